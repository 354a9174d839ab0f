import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';

export interface HttpTarget {
  readonly host: string;
  readonly port: number;
  readonly scheme: 'HTTP' | 'HTTPS';
  readonly path: string;
  /** Names may be repeated. */
  readonly headers: readonly { readonly name: string; readonly value: string }[];
}

const maxBodyBytes = 10_240;

/**
 * Sends a GET request and returns the status code and the beginning of the body. Certificates are not verified.
 * @throws when there is no answer
 */
export function httpCheck(
  target: HttpTarget,
  signal: AbortSignal,
): Promise<{ readonly code: number; readonly body: string }> {
  const { host, port, scheme, path, headers } = target;
  const lines: Record<string, string[]> = { 'user-agent': ['keelson-agent-probe'], accept: ['*/*'] };
  for (const { name, value } of headers) {
    const key = name.toLowerCase();
    lines[key] = [...(key === 'user-agent' || key === 'accept' ? [] : (lines[key] ?? [])), value];
  }
  const [own] = lines['host'] ?? [];
  const options = { host, port, path: path.startsWith('/') ? path : `/${path}`, signal, agent: false as const };
  return new Promise((resolve, reject) => {
    const send = scheme === 'HTTPS' ? httpsRequest : httpRequest;
    const request = send({
      ...options,
      ...(scheme === 'HTTPS' ? { rejectUnauthorized: false } : {}),
      setHost: own === undefined,
    });
    for (const [name, values] of Object.entries(lines)) request.setHeader(name, name === 'host' ? (own ?? '') : values);
    request.on('error', reject);
    request.on('response', (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (text: string) => {
        if (body.length < maxBodyBytes) body += text;
        else response.destroy();
      });
      // However the body ends: only the status code matters.
      response.on('close', () => resolve({ code: response.statusCode ?? 0, body: body.slice(0, maxBodyBytes) }));
      response.on('error', () => {});
    });
    request.end();
  });
}

/** Resolves when the port accepts a connection. @throws when it does not */
export function tcpCheck(host: string, port: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, signal });
    socket.on('error', reject);
    socket.on('connect', () => {
      socket.destroy();
      resolve();
    });
  });
}
