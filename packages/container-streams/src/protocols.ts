import type { ProtocolVersion } from './remote-process.ts';

/** What a WebSocket of a process or of ports speaks. */
export interface ChannelProtocol {
  /** As it was offered; undefined = nothing was. */
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

/** Versions that streams of SPDY have; the fifth is of WebSockets alone. */
const spdyProcessProtocols = versions
  .filter((version) => version < 5)
  .map((version) => ({ name: `${prefixOf(version)}channel.k8s.io`, version }));

export const portForwardProtocol = 'portforward.k8s.io';
/** A WebSocket whose binary messages are a SPDY connection. */
export const tunnelProtocol = `SPDY/3.1+${portForwardProtocol}`;

/** The words of a header that lists some; undefined without it. */
export function listed(header: string | string[] | undefined): string[] {
  const text = Array.isArray(header) ? header.join(',') : (header ?? '');
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}

/** What is offered first and known here. Whoever offers nothing speaks the first version. */
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
