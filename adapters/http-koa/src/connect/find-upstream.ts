import { type ConnectLocation, isProxyableIP, statusErrors } from '@keelson/core';
import type { NodeDialer, Upstream } from './node-dialer.ts';

/** A call that is ready to leave. */
export interface UpstreamCall {
  readonly upstream: Upstream;
  /** What is called, for failures: `the agent of node "n" at 192.0.2.1:10250`. */
  readonly label: string;
  /** With the query. */
  readonly target: string;
  /** The client chose what is asked: the answer may take any time. */
  readonly proxied: boolean;
  /** The agent of a node answers, whose answers are restricted more than those of pods. */
  readonly agent: boolean;
}

type Somewhere = Exclude<ConnectLocation, { readonly to: 'nothing' }>;

function hostPort(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Who asks for HTTPS at an address has no authority to check it by. */
function anyTls(scheme: 'http' | 'https'): Pick<Upstream, 'tls'> {
  return scheme === 'https' ? { tls: {} } : {};
}

function called(
  what: string,
  upstream: Upstream,
  location: Somewhere,
  { proxied, agent }: Pick<UpstreamCall, 'proxied' | 'agent'>,
): UpstreamCall {
  const target = location.query === '' ? location.path : `${location.path}?${location.query}`;
  return { upstream, label: `${what} at ${hostPort(upstream.host, upstream.port)}`, target, proxied, agent };
}

/** Something that is no part of the cluster's API. */
const page = { proxied: true, agent: false } as const;

/** Turns where a call leads into an address. @throws StatusError */
export async function findUpstream(
  location: Somewhere,
  dialer: NodeDialer | undefined,
  signal: AbortSignal,
): Promise<UpstreamCall> {
  if (location.to === 'address') {
    const { host, port, scheme } = location;
    if (!isProxyableIP(host)) throw statusErrors.badRequest(`address not allowed: ${host}`);
    return called(scheme, { host, port, ...anyTls(scheme) }, location, page);
  }
  const { node } = location;
  if (dialer === undefined)
    throw statusErrors.serviceUnavailable(`this server has no way to node ${JSON.stringify(node)}`);
  if (location.to === 'node') {
    const host = await dialer.address(node, signal);
    return called(
      `node ${JSON.stringify(node)}`,
      { host, port: location.port, ...anyTls(location.scheme) },
      location,
      page,
    );
  }
  const { anyCertificate = false, proxied = false } = location;
  const upstream = await dialer.agent(node, { anyCertificate, proxied, signal });
  return called(`the agent of node ${JSON.stringify(node)}`, upstream, location, { proxied, agent: true });
}
