import { Agent as PlainAgent, request as plainRequest } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import { Agent, request } from 'node:https';

/** By which protocol a client calls a server. */
export type Protocol = 'HTTP/1.1' | 'HTTP/1.1 over TLS' | 'HTTP/2 over TLS';

export interface BodyTraffic {
  readonly url: string;
  readonly protocol: Protocol;
  /** Trusted by the client, and by which the server knows it; absent for plain HTTP. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string };
  readonly connections: number;
  /** Length of each body. */
  readonly bytes: number;
  readonly requests: number;
}

/**
 * What became of the requests: how many were answered with each code, and the errors of those without a complete
 * answer.
 */
export interface TrafficOutcome {
  readonly answers: Readonly<Record<string, number>>;
  readonly failures: readonly string[];
}

/** Resolves to the code of the answer when all of it has arrived. */
type Send = (method: 'GET' | 'POST', path: string, body?: string) => Promise<number>;

const headers = { 'content-type': 'application/json' };

function overHttp1({ url, tls, connections }: BodyTraffic): { send: Send; close(): void } {
  const limits = { keepAlive: true, maxSockets: connections };
  const agent = tls === undefined ? new PlainAgent(limits) : new Agent({ ...limits, ...tls });
  const call = tls === undefined ? plainRequest : request;
  return {
    send: (method, path, body) =>
      new Promise((resolve, reject) => {
        const length = body === undefined ? {} : { ...headers, 'content-length': String(Buffer.byteLength(body)) };
        const sent = call(`${url}${path}`, { method, agent, headers: length }, (answer) => {
          answer.resume();
          answer.once('error', reject);
          answer.once('end', () => resolve(answer.statusCode ?? 0));
        });
        sent.once('error', reject);
        sent.end(body);
      }),
    close: () => agent.destroy(),
  };
}

function overHttp2({ url, tls, connections }: BodyTraffic): { send: Send; close(): void } {
  const sessions: ClientHttp2Session[] = Array.from({ length: connections }, () => connect(url, tls));
  let next = 0;
  return {
    send: (method, path, body) =>
      new Promise((resolve, reject) => {
        const session = sessions[next++ % sessions.length];
        const stream = session?.request({ ':method': method, ':path': path, ...(body === undefined ? {} : headers) });
        if (stream === undefined) throw new Error('no connection');
        let status = 0;
        stream.once('response', (answer) => {
          status = answer[':status'] ?? 0;
        });
        stream.resume();
        stream.once('error', reject);
        stream.once('end', () => resolve(status));
        stream.end(body);
      }),
    close: () => {
      for (const session of sessions) session.destroy();
    },
  };
}

/** A Pod of exactly so many bytes as JSON: of the built-in kinds it is one whose objects may be as large as a body. */
function podOf(bytes: number): string {
  const pod = (value: string) => {
    const containers = [{ name: 'c', image: 'i', env: [{ name: 'FILLER', value }] }];
    return JSON.stringify({ metadata: { generateName: 'body-' }, spec: { containers } });
  };
  return pod('x'.repeat(bytes - pod('').length));
}

/**
 * Creates Pods without storing them, so that each answer is as long as its request, one request after the other on each
 * connection. Every second request is a short one, which arrives while a long answer may not be written completely.
 */
export async function sendBodies(traffic: BodyTraffic): Promise<TrafficOutcome> {
  const { send, close } = traffic.protocol === 'HTTP/2 over TLS' ? overHttp2(traffic) : overHttp1(traffic);
  const body = podOf(traffic.bytes);
  const answers: Record<string, number> = {};
  const failures: string[] = [];
  let left = traffic.requests;
  const work = async () => {
    while (left-- > 0) {
      try {
        const large = left % 2 === 0;
        const code = large
          ? await send('POST', '/api/v1/namespaces/default/pods?dryRun=All', body)
          : await send('GET', '/api/v1/namespaces/default');
        answers[code] = (answers[code] ?? 0) + 1;
      } catch (error) {
        failures.push(error instanceof Error ? error.message : String(error));
      }
    }
  };
  await Promise.all(Array.from({ length: traffic.connections }, work));
  close();
  return { answers, failures };
}
