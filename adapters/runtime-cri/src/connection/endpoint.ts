import { isAbsolute } from 'node:path';
import { RuntimeError } from '@keelson/container-runtime';

export interface Endpoint {
  /** What the gRPC library dials. */
  readonly target: string;
  /** The daemon is on this machine: paths it tells or is told are those that this process sees. */
  readonly local: boolean;
}

/** @throws `InvalidArgument` */
export function parseEndpoint(text: string): Endpoint {
  const path = isAbsolute(text) ? text : /^unix:(?:\/\/)?(\/.+)$/.exec(text)?.[1];
  if (path !== undefined) return { target: `unix://${path}`, local: true };
  const address = /^tcp:\/\/([^/]+:\d+)\/?$/.exec(text)?.[1];
  if (address === undefined) {
    const forms = 'unix:///path, /path or tcp://host:port';
    throw new RuntimeError('InvalidArgument', `not an endpoint of a container runtime (${forms}): "${text}"`);
  }
  return { target: `dns:${address}`, local: /^(127\.\d+\.\d+\.\d+|localhost|\[::1\]):/.test(address) };
}
