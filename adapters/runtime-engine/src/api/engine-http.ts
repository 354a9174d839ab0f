import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { apiError, connectionError } from './api-error.ts';

export interface EngineRequest {
  /** Undefined values are left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

export interface Answer<T> {
  readonly status: number;
  readonly body: T;
}

type Method = 'GET' | 'POST' | 'DELETE';

/** HTTP to the engine's socket. Answers of 400 and above are errors; so is nobody at the other end, at once. */
export class EngineHttp {
  readonly #socketPath: string;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 8 });
  #prefix = '';

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** Version of the API, as `1.41`; before it is set, the engine decides. */
  set version(version: string) {
    this.#prefix = `/v${version}`;
  }

  /** A whole answer. The type of the body is the caller's knowledge of the API; an empty one is undefined. */
  async json<T>(method: Method, path: string, given: EngineRequest = {}): Promise<Answer<T>> {
    const response = await this.open(method, path, given);
    const bytes = await buffer(response).catch((error: unknown) => {
      throw connectionError(error, `${method} ${path}`, given.signal);
    });
    const text = bytes.toString();
    // Some calls answer with nothing, or with a word.
    const body: unknown = /^\s*[[{]/.test(text) ? JSON.parse(text) : undefined;
    return { status: response.statusCode ?? 0, body: body as T };
  }

  /** An answer whose body is read as it comes. */
  async open(method: Method, path: string, given: EngineRequest = {}): Promise<IncomingMessage> {
    const response = await this.#send(method, path, given);
    if ((response.statusCode ?? 0) < 400) return response;
    const text = await buffer(response).catch(() => Buffer.alloc(0));
    throw apiError(response.statusCode ?? 0, `${method} ${path}`, text.toString());
  }

  /** A connection that is the stream of a process from now on. */
  hijack(path: string, given: EngineRequest = {}): Promise<Socket> {
    const what = `POST ${path}`;
    return new Promise((resolve, reject) => {
      const headers = { connection: 'Upgrade', upgrade: 'tcp' };
      // A connection of its own: it never goes back to the agent.
      const outgoing = this.#begin('POST', path, { ...given, headers: { ...given.headers, ...headers } }, false);
      outgoing.once('upgrade', (_response, socket: Socket, head: Buffer) => {
        socket.setTimeout(0);
        socket.on('error', () => {}); // told by 'close'
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
        // The engine closed a connection that was kept: this request never reached it.
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
