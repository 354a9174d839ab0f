import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent, type AgentOptions as HttpsAgentOptions, request as httpsRequest } from 'node:https';
import type { HttpClientOptions } from './http-client-options.ts';

/** A request as it is sent. */
export interface WireRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | number>>;
  /** True for watches, which use a separate connection pool and so never delay requests. */
  readonly stream: boolean;
}

const idleMs = 30_000;

function tlsOptions(options: HttpClientOptions): HttpsAgentOptions {
  const { ca, clientCertificate, clientKey, tlsServerName, insecureSkipTlsVerify } = options;
  if ((clientCertificate === undefined) !== (clientKey === undefined)) {
    throw new Error('a client certificate and its key must be specified together');
  }
  return {
    minVersion: 'TLSv1.2',
    ...(ca === undefined ? {} : { ca }),
    ...(clientCertificate === undefined ? {} : { cert: clientCertificate }),
    ...(clientKey === undefined ? {} : { key: clientKey }),
    ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
    ...(insecureSkipTlsVerify ? { rejectUnauthorized: false } : {}),
  };
}

/** The address of a server and its connections. */
export class Endpoint {
  /** The address for messages, without credentials and path. */
  readonly origin: string;
  /** The socket event after which the server may have received the request. */
  readonly connectEvent: 'connect' | 'secureConnect';
  readonly #prefix: string;
  readonly #address: Pick<RequestOptions, 'hostname' | 'port'>;
  readonly #start: (options: RequestOptions) => ClientRequest;
  readonly #requests: HttpAgent;
  readonly #streams: HttpAgent;

  constructor(options: HttpClientOptions) {
    const url = new URL(options.server);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') {
      throw new Error(`the address of the server must begin with http:// or https://: ${options.server}`);
    }
    const secure = url.protocol === 'https:';
    this.origin = url.origin;
    this.connectEvent = secure ? 'secureConnect' : 'connect';
    this.#prefix = url.pathname.replace(/\/+$/, '');
    this.#address = {
      hostname: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port === '' ? (secure ? 443 : 80) : url.port,
    };
    this.#start = secure ? httpsRequest : httpRequest;
    const pool = (maxSockets: number): HttpAgent => {
      const shared = { keepAlive: true, keepAliveMsecs: idleMs, maxSockets, scheduling: 'lifo' as const };
      return secure ? new HttpsAgent({ ...shared, ...tlsOptions(options) }) : new HttpAgent(shared);
    };
    this.#requests = pool(options.maxConnections ?? 64);
    this.#streams = pool(Number.POSITIVE_INFINITY);
  }

  start({ method, path, headers, stream }: WireRequest): ClientRequest {
    return this.#start({
      ...this.#address,
      method,
      path: `${this.#prefix}${path}`,
      headers,
      agent: stream ? this.#streams : this.#requests,
    });
  }

  /** Closes every connection. */
  close(): void {
    this.#requests.destroy();
    this.#streams.destroy();
  }
}
