import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { type Clock, printableText, type StatusError, statusErrors } from '@keelson/core';
import type { Exchange } from '../exchange.ts';
import type { HttpLimits } from '../options.ts';
import type { UpstreamCall } from './find-upstream.ts';
import { mayHaveBody, requestHeaders } from './headers.ts';

/** What came back: an answer, or with `socket` a connection that is no longer HTTP. */
export interface UpstreamAnswer {
  readonly answer: IncomingMessage;
  readonly socket?: Socket;
  /** Bytes that came behind the head. */
  readonly head?: Buffer;
}

export interface CallOptions {
  readonly clock: Clock;
  readonly limits: Pick<HttpLimits, 'dialTimeoutMs' | 'agentAnswerMs'>;
}

function open(exchange: Exchange, { upstream, target, agent }: UpstreamCall): ClientRequest {
  const { host, port, tls } = upstream;
  const { request, upgrade } = exchange;
  const common = {
    host,
    port,
    path: target,
    method: request.method,
    headers: requestHeaders(request, { upgrade: upgrade !== undefined, agent }),
    signal: exchange.signal,
    // A connection of its own: calls are few and long.
    agent: false as const,
  };
  if (tls === undefined) return httpRequest(common);
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
 * Passes the request on. Resolves with the head of the answer.
 * @throws StatusError 503 or 504 that says who did not answer, and why
 */
export function callUpstream(
  exchange: Exchange,
  call: UpstreamCall,
  { clock, limits }: CallOptions,
): Promise<UpstreamAnswer> {
  const sent = open(exchange, call);
  return new Promise<UpstreamAnswer>((resolve, reject) => {
    let cancel = clock.after(limits.dialTimeoutMs, () => {
      sent.destroy(new Error(`no connection within ${limits.dialTimeoutMs / 1000} s`));
    });
    const settle = (done: () => void) => {
      cancel();
      done();
    };
    sent.once('socket', (socket) => {
      socket.once(call.upstream.tls === undefined ? 'connect' : 'secureConnect', () => {
        cancel();
        // What the client asks of others may take its time, as with any proxy.
        if (call.proxied) return;
        cancel = clock.after(limits.agentAnswerMs, () => {
          settle(() =>
            reject(statusErrors.timeout(`${call.label} did not answer within ${limits.agentAnswerMs / 1000} s`)),
          );
          sent.destroy();
        });
      });
    });
    sent.on('error', (error) => settle(() => reject(unreachable(call, error))));
    sent.once('response', (answer) => settle(() => resolve({ answer })));
    // Without this listener Node would drop the connection of an upgrade that nobody asked for, and report nothing.
    sent.once('upgrade', (answer, socket, head) => settle(() => resolve({ answer, socket, head })));
    if (exchange.upgrade === undefined && mayHaveBody(exchange.request)) exchange.request.pipe(sent);
    else sent.end();
  });
}
