import type { IncomingMessage } from 'node:http';
import { type StatusError, statusErrors } from '@keelson/core';
import { printableText, type RequestAttributes } from '@keelson/core/internal';
import type { Exchange, FlatHeaders } from '../exchange/exchange.ts';
import type { Upstream } from '../exchange/options.ts';
import { agentAnswerHeaders, apiAnswerHeaders, pageAnswerHeaders } from './headers.ts';
import type { UpstreamAnswer, UpstreamCall } from './upstream.ts';

/** The 502 for an upstream that responds with a redirect; the message is that of kube-apiserver. */
function redirected({ label }: UpstreamCall, code: number): StatusError {
  const rule = 'the backend attempted to redirect this request, which is not permitted';
  return statusErrors.badGateway(`${rule}: ${label} answered ${code}`);
}

/** Origin of the addresses on an upstream. */
export function originOf({ host, port, tls }: Upstream): string {
  return `${tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Path of the proxy that a request passes, without a slash at its end. */
export function prefixOf({ path, remainder }: RequestAttributes): string {
  const prefix = remainder.length === 0 ? path : path.split('/').slice(0, -remainder.length).join('/');
  return prefix.endsWith('/') ? prefix.slice(0, -1) : prefix;
}

/**
 * The target of a pod's redirect as a path below the proxy of that pod; undefined when it is on another server. URL
 * parsing removes dot segments, so that the path cannot leave the proxy.
 */
function locationBelowProxy(
  { attributes }: Exchange,
  { upstream, target }: UpstreamCall,
  location: string,
): string | undefined {
  const own = originOf(upstream);
  let url: URL;
  try {
    url = new URL(location, own + target);
    if (url.origin !== new URL(own).origin || url.username !== '' || url.password !== '') return undefined;
  } catch {
    return undefined;
  }
  return `${prefixOf(attributes)}${url.pathname}${url.search}${url.hash}`;
}

/**
 * Decides which parts of an upstream's response are forwarded. An agent may be compromised: clients follow redirects
 * with their credentials, browsers run pages under the origin of the API, and terminals execute escape sequences.
 *
 * @returns the headers to forward
 * @throws StatusError 502 for an invalid status code and for a redirect to another server; the failure that an agent
 *   reports
 */
export async function judgeAnswer(
  exchange: Exchange,
  answer: IncomingMessage,
  call: UpstreamCall,
): Promise<FlatHeaders> {
  const { statusCode = 0, headers } = answer;
  const rejected = (error: StatusError): StatusError => {
    answer.destroy();
    return error;
  };
  if (statusCode < 200 || statusCode > 599) {
    throw rejected(
      statusErrors.badGateway(`${call.label} answered with ${statusCode}, which is not a status code of a response`),
    );
  }
  const redirect = statusCode >= 300 && statusCode < 400;
  if (call.agent) {
    if (redirect) throw rejected(redirected(call, statusCode));
    if (statusCode >= 400) throw await failedAnswer(answer, call);
    return agentAnswerHeaders(answer, { streams: !call.proxied });
  }
  const location = headers.location === undefined ? undefined : locationBelowProxy(exchange, call, headers.location);
  if (redirect && headers.location !== undefined && location === undefined)
    throw rejected(redirected(call, statusCode));
  return pageAnswerHeaders(answer, location);
}

/**
 * The headers of an aggregated server's response. Clients would follow a redirect with their credentials.
 *
 * @throws StatusError 502 for an invalid status code and for a redirect
 */
export function judgeApiAnswer(answer: IncomingMessage, call: UpstreamCall): FlatHeaders {
  const { statusCode = 0 } = answer;
  if (statusCode === 304 || (statusCode >= 200 && statusCode < 300) || (statusCode >= 400 && statusCode <= 599))
    return apiAnswerHeaders(answer);
  answer.destroy();
  if (statusCode >= 300 && statusCode < 400) throw redirected(call, statusCode);
  throw statusErrors.badGateway(`${call.label} answered with ${statusCode}, which is not a status code of a response`);
}

const protocols = (header: string | undefined): string[] =>
  (header ?? '').split(',').map((one) => one.trim().toLowerCase());

/** Rejects an upgrade to a protocol that the client did not request. @throws StatusError 502 */
export function checkUpgrade(
  { request, upgrade }: Exchange,
  { answer, socket }: UpstreamAnswer,
  { label }: UpstreamCall,
): void {
  const wanted = upgrade === undefined ? [] : protocols(request.headers.upgrade);
  const chosen = answer.headers.upgrade ?? '';
  if (wanted.includes(chosen.trim().toLowerCase())) return;
  socket?.destroy();
  const name = JSON.stringify(printableText(chosen).slice(0, 64));
  throw statusErrors.badGateway(`${label} switched to the protocol ${name}, which the client did not request`);
}

/** Longest part of a failure's body that is read, in bytes. */
const textLimit = 16 * 1024;

async function textOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= textLimit) break;
    }
  } catch {
    // After a failed read the bytes received so far are used.
  }
  answer.destroy();
  return Buffer.concat(chunks).subarray(0, textLimit).toString().trim();
}

/** The message of a Status, or the text itself. */
function messageOf(text: string, { headers }: IncomingMessage): string {
  if (!(headers['content-type'] ?? '').startsWith('application/json')) return text;
  try {
    const { kind, message } = JSON.parse(text) as { kind?: unknown; message?: unknown };
    return kind === 'Status' && typeof message === 'string' ? message : text;
  } catch {
    return text;
  }
}

/**
 * Converts a failure response of a node agent to a Status. When the agent does not accept this server (401, 403, 407),
 * the client's credentials are not the cause, so the code is 503.
 */
export async function failedAnswer(answer: IncomingMessage, { label }: UpstreamCall): Promise<StatusError> {
  const { statusCode = 500, statusMessage = '' } = answer;
  const text = printableText(messageOf((await textOf(answer)) || statusMessage, answer)).trim();
  if (statusCode === 401 || statusCode === 403 || statusCode === 407) {
    return statusErrors.serviceUnavailable(`${label} rejects this server with ${statusCode}: ${text}`);
  }
  return statusErrors.relayed(statusCode, text);
}
