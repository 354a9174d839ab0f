import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { apiError, connectionError } from './api-error.ts';

export interface EngineRequest {
  /** Query parameters; those with the value undefined are omitted. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Body of the request, which is sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

export interface Answer<T> {
  readonly status: number;
  readonly body: T;
}

type Method = 'GET' | 'POST' | 'DELETE';

/** HTTP client of the engine's socket. A status of 400 or above and a failed connection reject at once. */
export class EngineHttp {
  readonly #socketPath: string;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 8 });
  #prefix = '';

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** Version of the API, such as `1.41`; before it is set, the engine selects the version. */
  set version(version: string) {
    this.#prefix = `/v${version}`;
  }

  /** Reads the complete response. The caller states the type of the body; an empty body is undefined. */
  async json<T>(method: Method, path: string, given: EngineRequest = {}): Promise<Answer<T>> {
    const response = await this.open(method, path, given);
    const bytes = await buffer(response).catch((error: unknown) => {
      throw connectionError(error, `${method} ${path}`, given.signal);
    });
    const text = bytes.toString();
    // The responses of some calls are empty or plain text.
    const body: unknown = /^\s*[[{]/.test(text) ? JSON.parse(text) : undefined;
    return { status: response.statusCode ?? 0, body: body as T };
  }

  /** Resolves with the response once its header has arrived; the caller reads the body. */
  async open(method: Method, path: string, given: EngineRequest = {}): Promise<IncomingMessage> {
    const response = await this.#send(method, path, given);
    if ((response.statusCode ?? 0) < 400) return response;
    const text = await buffer(response).catch(() => Buffer.alloc(0));
    throw apiError(response.statusCode ?? 0, `${method} ${path}`, text.toString());
  }

  /** Upgrades a connection to the raw stream of a process. */
  hijack(path: string, given: EngineRequest = {}): Promise<Socket> {
    const what = `POST ${path}`;
    return new Promise((resolve, reject) => {
      const headers = { connection: 'Upgrade', upgrade: 'tcp' };
      // Not a connection of the pool: after the upgrade, a connection cannot carry other requests.
      const outgoing = this.#begin('POST', path, { ...given, headers: { ...given.headers, ...headers } }, false);
      outgoing.once('upgrade', (_response, socket: Socket, head: Buffer) => {
        socket.setTimeout(0);
        socket.on('error', () => {}); // 'close' follows
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
      });
      outgoing.once('response', (response) => {
        buffer(response).then(
          (bytes) => reject(apiError(response.statusCode ?? 0, what, bytes.toString())),
          (error: unknown) => reject(connectionError(error, what, given.signal)),
        );
      });
      outgoing.on('error', (error) => reject(connectionError(error, what, given.signal)));
    });
  }

  close(): void {
    this.#agent.destroy();
  }

  async #send(method: Method, path: string, given: EngineRequest): Promise<IncomingMessage> {
    for (;;) {
      const outgoing = this.#begin(method, path, given, this.#agent);
      try {
        return await new Promise<IncomingMessage>((resolve, reject) => {
          outgoing.once('response', resolve);
          outgoing.on('error', reject);
        });
      } catch (error) {
        // The engine closed an idle connection, so this request never reached it and is sent again.
        const stale = outgoing.reusedSocket && (error as { code?: unknown }).code === 'ECONNRESET';
        if (!stale || given.signal?.aborted) throw connectionError(error, `${method} ${path}`, given.signal);
      }
    }
  }

  #begin(method: Method, path: string, given: EngineRequest, agent: Agent | false): ClientRequest {
    const { query = {}, body, headers = {}, signal } = given;
    const pairs = Object.entries(query).flatMap(([key, value]): [string, string][] =>
      value === undefined ? [] : [[key, String(value)]],
    );
    const search = pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const outgoing = request({
      ...{
        socketPath: this.#socketPath,
        method,
        agent,
        path: `${path.startsWith('/libpod') ? '/v4.0.0' : this.#prefix}${path}${search}`,
      },
      headers: {
        host: 'engine',
        ...(bytes && { 'content-type': 'application/json', 'content-length': bytes.length }),
        ...headers,
      },
      ...(signal && { signal }),
    });
    outgoing.end(bytes);
    return outgoing;
  }
}
