import { type ClientRequest, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { type Agent, request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { type ConnectLocation, isProxyableIP, type StatusError, statusErrors } from '@keelson/core';
import { printableText } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import type { Exchange } from '../exchange/exchange.ts';
import type { HttpLimits, NodeDialer, Upstream } from '../exchange/options.ts';
import { mayHaveBody } from '../exchange/request-body.ts';
import { requestHeaders } from './headers.ts';

/** A response, or, with `socket`, an upgraded connection. */
export interface UpstreamAnswer {
  readonly answer: IncomingMessage;
  readonly socket?: Socket;
  /** Bytes received after the head. */
  readonly head?: Buffer;
}

export interface CallOptions {
  readonly clock: Clock;
  readonly limits: Pick<HttpLimits, 'dialTimeoutMs' | 'agentAnswerMs'>;
}

function open(exchange: Exchange, { upstream, target, agent, identity, connections }: UpstreamCall): ClientRequest {
  const { host, port, tls } = upstream;
  const { request, upgrade } = exchange;
  const common = {
    host,
    port,
    path: target,
    method: request.method,
    headers: { ...requestHeaders(request, { upgrade: upgrade !== undefined, agent }), ...identity },
    signal: exchange.signal,
    // Calls to nodes and pods have a connection of their own: they are few and long.
    agent: connections ?? (false as const),
  };
  if (tls === undefined) return httpRequest({ ...common, agent: false });
  const { cert, key, ca, servername } = tls;
  return httpsRequest({
    ...common,
    rejectUnauthorized: ca !== undefined,
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
    ...(ca === undefined ? {} : { ca }),
    ...(servername === undefined ? {} : { servername }),
  });
}

function unreachable({ label }: UpstreamCall, error: Error): StatusError {
  const { code } = error as NodeJS.ErrnoException;
  const why = printableText(error.message || code || error.name);
  return statusErrors.serviceUnavailable(`${label} cannot be reached: ${why}`, error);
}

/**
 * Forwards the request. Resolves with the head of the response.
 * @throws StatusError 503 when the upstream cannot be reached, 504 when it does not respond in time
 */
export function callUpstream(
  exchange: Exchange,
  call: UpstreamCall,
  { clock, limits }: CallOptions,
): Promise<UpstreamAnswer> {
  const sent = open(exchange, call);
  const repeatable = call.connections !== undefined && !mayHaveBody(exchange.request);
  return new Promise<UpstreamAnswer>((resolve, reject) => {
    let cancel = clock.after(limits.dialTimeoutMs, () => {
      sent.destroy(new Error(`no connection within ${limits.dialTimeoutMs / 1000} s`));
    });
    const settle = (done: () => void) => {
      cancel();
      done();
    };
    sent.once('socket', (socket) => {
      if (sent.reusedSocket) return cancel();
      socket.once(call.upstream.tls === undefined ? 'connect' : 'secureConnect', () => {
        cancel();
        // The duration of a proxied request is up to the pod or node.
        if (call.proxied) return;
        cancel = clock.after(limits.agentAnswerMs, () => {
          settle(() =>
            reject(statusErrors.timeout(`${call.label} did not answer within ${limits.agentAnswerMs / 1000} s`)),
          );
          sent.destroy();
        });
      });
    });
    sent.on('error', (error: NodeJS.ErrnoException) => {
      const stale = sent.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
      settle(() => {
        // A request without a body is repeated when the upstream had closed the keep-alive connection.
        if (repeatable && stale && !exchange.signal.aborted) resolve(callUpstream(exchange, call, { clock, limits }));
        else reject(unreachable(call, error));
      });
    });
    sent.once('response', (answer) => settle(() => resolve({ answer })));
    // Without this listener Node drops the connection of an unsolicited upgrade without an error.
    sent.once('upgrade', (answer, socket, head) => settle(() => resolve({ answer, socket, head })));
    if (exchange.upgrade === undefined && mayHaveBody(exchange.request)) exchange.request.pipe(sent);
    else sent.end();
  });
}

/** A call with its resolved address. */
export interface UpstreamCall {
  readonly upstream: Upstream;
  /** Names the upstream in errors: `the agent of node "n" at 192.0.2.1:10250`. */
  readonly label: string;
  /** Path and query. */
  readonly target: string;
  /** True for a request of the client to a pod or node, whose response may take any time. */
  readonly proxied: boolean;
  /** True when the upstream is a node agent, whose responses are restricted more than those of pods. */
  readonly agent: boolean;
  /** Headers that state the user to the upstream. */
  readonly identity?: OutgoingHttpHeaders;
  /** Connections that are kept between calls. */
  readonly connections?: Agent;
}

type Somewhere = Exclude<ConnectLocation, { readonly to: 'nothing' }>;

function hostPort(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Without an authority the certificate of an HTTPS address is not verified. */
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

/** A call to a pod, service or node whose response is not defined by the API. */
const page = { proxied: true, agent: false } as const;

/** Resolves the location of a call to an address. @throws StatusError */
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
    throw statusErrors.serviceUnavailable(
      `this server cannot connect to nodes, so it cannot reach node ${JSON.stringify(node)}`,
    );
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
