import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { UserInfo } from '@keelson/core';
import type { APIResourceList, SwaggerPart } from '@keelson/core/internal';
import type { Upstream } from './options.ts';

/** A server that serves a version of an API group in place of this one. */
export interface AggregatedServer {
  /** Name of the server in errors: `the server of APIService "v1.example.com"`. */
  readonly label: string;
  /** False while the server is unavailable. Its requests are then answered with 503. */
  readonly available: boolean;
  /** Address and TLS options of the server for one call. @throws StatusError */
  upstream(): Promise<Upstream>;
  /** Called when a call did not reach the server, so that its availability is checked again at once. */
  failed(): void;
}

/** A version of an API group that another server serves. */
export interface AggregatedVersion {
  readonly group: string;
  readonly version: string;
  readonly groupPriority: number;
  readonly versionPriority: number;
  /** Resources of the version; undefined while they are unknown. */
  readonly resources: APIResourceList | undefined;
  /** True while the server is unavailable, so that the known resources may be outdated. */
  readonly stale: boolean;
  /** Hash of the OpenAPI document of the version; undefined without a document. */
  readonly openApiHash: string | undefined;
  /** The part of the Swagger document about the version; undefined without one. */
  readonly swagger: SwaggerPart | undefined;
}

/** The API groups of other servers: see docs/how-to/extend-a-cluster.md. */
export interface AggregatedApis {
  /** False while no other server serves an API group. Requests then skip {@link find}. */
  readonly active: boolean;
  /** Incremented when the versions change. */
  readonly generation: number;
  /** All versions that other servers serve, ordered by priority. */
  versions(): readonly AggregatedVersion[];
  find(group: string, version: string): AggregatedServer | undefined;
}

/** Node decodes header bytes as Latin-1; servers expect UTF-8. */
const utf8 = (text: string) => Buffer.from(text, 'utf8').toString('latin1');

/** The headers by which this server states the user to an aggregated server. */
export function identityHeaders({ name, uid, groups, extra = {} }: UserInfo): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = { 'x-remote-user': utf8(name), 'x-remote-group': groups.map(utf8) };
  if (uid !== undefined) headers['x-remote-uid'] = utf8(uid);
  for (const [key, values] of Object.entries(extra))
    headers[`x-remote-extra-${encodeURIComponent(key).toLowerCase()}`] = values.map(utf8);
  return headers;
}

/**
 * The headers by which this server states the origin of a request to an aggregated server, as kube-apiserver does;
 * an upgraded connection has the address of the client only. Those of the client are not forwarded, because the other
 * server would trust them.
 */
export function originHeaders(
  { socket }: IncomingMessage,
  { host, port }: Upstream,
  path: string,
  upgraded: boolean,
): OutgoingHttpHeaders {
  const client = socket.remoteAddress?.replace(/^::ffff:(?=\d+\.)/, '');
  return {
    ...(client === undefined ? {} : { 'x-forwarded-for': client }),
    ...(upgraded ? {} : { 'x-forwarded-host': `${host.includes(':') ? `[${host}]` : host}:${port}` }),
    ...(upgraded ? {} : { 'x-forwarded-proto': 'https', 'x-forwarded-uri': path }),
  };
}
