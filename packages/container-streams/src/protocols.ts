import type { ProtocolVersion } from './remote-process.ts';

/** Protocol of a WebSocket for a process or for ports. */
export interface ChannelProtocol {
  /** Name as the client offered it; undefined when it offered none. */
  readonly name: string | undefined;
  readonly version: ProtocolVersion;
  readonly base64: boolean;
}

const versions: readonly ProtocolVersion[] = [5, 4, 3, 2, 1];
const prefixOf = (version: ProtocolVersion) => (version === 1 ? '' : `v${version}.`);

const channelProtocols: readonly (ChannelProtocol & { readonly name: string })[] = versions.flatMap((version) => [
  { name: `${prefixOf(version)}channel.k8s.io`, version, base64: false },
  { name: `${prefixOf(version)}base64.channel.k8s.io`, version, base64: true },
]);

/** Protocol versions over SPDY. The fifth version exists for WebSockets only. */
const spdyProcessProtocols = versions
  .filter((version) => version < 5)
  .map((version) => ({ name: `${prefixOf(version)}channel.k8s.io`, version }));

export const portForwardProtocol = 'portforward.k8s.io';
/** Protocol of a WebSocket whose binary messages carry a SPDY connection. */
export const tunnelProtocol = `SPDY/3.1+${portForwardProtocol}`;

/** The elements of a header with a comma-separated list; empty if the header is absent. */
export function listed(header: string | string[] | undefined): string[] {
  const text = Array.isArray(header) ? header.join(',') : (header ?? '');
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}

/** The first offered protocol that is supported. A client that offers none uses the first version. */
export function chooseChannelProtocol(
  offered: readonly string[],
  newest: ProtocolVersion,
): ChannelProtocol | undefined {
  if (offered.length === 0) return { name: undefined, version: 1, base64: false };
  const known = channelProtocols.filter(({ version }) => version <= newest);
  return offered.flatMap((name) => known.find((one) => one.name === name) ?? [])[0];
}

export function chooseSpdyProtocol(
  offered: readonly string[],
): { readonly name: string | undefined; readonly version: ProtocolVersion } | undefined {
  if (offered.length === 0) return { name: undefined, version: 1 };
  return offered.flatMap((name) => spdyProcessProtocols.find((one) => one.name === name) ?? [])[0];
}

export const spdyProtocolNames: readonly string[] = spdyProcessProtocols.map(({ name }) => name);
export const channelProtocolNames = (newest: ProtocolVersion): readonly string[] =>
  channelProtocols.filter(({ version }) => version <= newest).map(({ name }) => name);
