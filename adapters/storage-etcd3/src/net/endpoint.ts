import { type Client, type ClientDuplexStream, type ClientUnaryCall, connectivityState, type Metadata } from '@grpc/grpc-js';
import { ConnectionPool } from 'etcd3/lib/connection-pool.js';
import { CredentialsError, NotSentError } from '../etcd-errors.ts';
import { decodeWatchFrame, type WatchFrame } from '../wire/watch-response.ts';

export interface Credentials {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

export interface EndpointOptions {
  /** `http://host:port` or `https://host:port`. */
  readonly url: string;
  readonly credentials?: Credentials | undefined;
  readonly auth?: { readonly username: string; readonly password: string } | undefined;
}

export interface UnaryOptions {
  /** Epoch milliseconds. */
  readonly deadline: number;
  /** Bounds the wait for a connection. */
  readonly connectBy: number;
  /** `cancelReads` may end it. */
  readonly read: boolean;
  readonly signal?: AbortSignal | undefined;
}

type PoolOptions = ConstructorParameters<typeof ConnectionPool>[0];

/** The library's own retries repeat writes whose answer was lost, so neither its policies nor its breaker are used. */
const noPolicy = { execute: (call: () => unknown) => call() } as unknown as never;

/** Largest message accepted: pages and fragments are kept well below. */
export const maxMessageBytes = 64 * 1024 * 1024;

const channelOptions = {
  'grpc.max_receive_message_length': maxMessageBytes,
  'grpc.max_send_message_length': maxMessageBytes,
  // A peer that has vanished is noticed within 20 s; etcd allows a ping every 5 s.
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  // Otherwise the channel for watches would share its connection with the one for calls.
  'grpc.use_local_subchannel_pool': 1,
};

const same = (bytes: Buffer): Buffer => bytes;
const watchMethod = '/etcdserverpb.Watch/Watch';

export type WatchCall = ClientDuplexStream<Buffer, WatchFrame>;

/** One member of the cluster: a connection for calls and one for watches, made and authenticated by the etcd3 library. */
export class Endpoint {
  readonly url: string;
  readonly #calls: ConnectionPool;
  readonly #watches: ConnectionPool;
  /** Reads under way. */
  readonly #reads = new Set<ClientUnaryCall>();

  constructor({ url, credentials, auth }: EndpointOptions) {
    this.url = url;
    const { ca, cert, key } = credentials ?? {};
    const options = {
      hosts: [url],
      grpcOptions: channelOptions,
      faultHandling: { host: () => noPolicy, global: noPolicy },
      ...(auth === undefined ? {} : { auth }),
      ...(ca === undefined
        ? {}
        : { credentials: { rootCertificate: ca, ...(key && { privateKey: key }), ...(cert && { certChain: cert }) } }),
    } as PoolOptions;
    this.#calls = new ConnectionPool(options);
    this.#watches = new ConnectionPool(options);
  }

  /**
   * One call, sent once. Rejects with NotSentError when there was no connection to send it over, otherwise with grpc-js's error.
   */
  async unary<T>(method: string, request: Buffer, decode: (answer: Buffer) => T, options: UnaryOptions): Promise<T> {
    const { client, metadata } = await this.#client(this.#calls, options.connectBy, options.signal);
    const { signal } = options;
    if (signal?.aborted) throw new NotSentError('the call was aborted', signal.reason);
    return new Promise<T>((resolve, reject) => {
      const call = client.makeUnaryRequest(
        method,
        same,
        decode,
        request,
        metadata,
        { deadline: options.deadline },
        (error, answer) => {
          signal?.removeEventListener('abort', abort);
          if (options.read) this.#reads.delete(call);
          if (error !== null) reject(error);
          else resolve(answer as T);
        },
      );
      const abort = () => call.cancel();
      if (options.read) this.#reads.add(call);
      signal?.addEventListener('abort', abort, { once: true });
    });
  }

  /** A stream for watches, on a connection that calls do not use. A member that loses its leader ends it. */
  async watch(connectBy: number): Promise<WatchCall> {
    const { client, metadata } = await this.#client(this.#watches, connectBy);
    const own = metadata.clone();
    own.set('hasleader', 'true');
    return client.makeBidiStreamRequest(watchMethod, same, decodeWatchFrame, own);
  }

  /** Makes the library ask for a new token: a call of its own notices that the old one is refused. */
  async renewToken(): Promise<void> {
    for (const pool of [this.#calls, this.#watches]) {
      await pool.exec('KV', 'range', { key: Buffer.from('\0'), limit: 1 }, { deadline: Date.now() + 5000 });
    }
  }

  cancelReads(): void {
    for (const call of this.#reads) call.cancel();
  }

  close(): void {
    this.#calls.close();
    this.#watches.close();
  }

  async #client(
    pool: ConnectionPool,
    connectBy: number,
    signal?: AbortSignal,
  ): Promise<{ readonly client: Client; readonly metadata: Metadata }> {
    let answer: { readonly client: Client; readonly metadata: Metadata };
    try {
      answer = await pool.withConnection('KV', ({ client, metadata }) => ({ client, metadata }));
    } catch (error) {
      const { message } = error as Error;
      if (/authentication failed|authentication is not enabled/.test(message)) throw new CredentialsError(message, error);
      throw new NotSentError(`no token from ${this.url}: ${message}`, error);
    }
    if (answer.client.getChannel().getConnectivityState(true) !== connectivityState.READY) {
      await this.#connected(answer.client, connectBy, signal);
    }
    return answer;
  }

  #connected(client: Client, connectBy: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = () => reject(new NotSentError('the call was aborted', signal?.reason));
      if (signal?.aborted) return abort();
      signal?.addEventListener('abort', abort, { once: true });
      client.waitForReady(connectBy, (error) => {
        signal?.removeEventListener('abort', abort);
        if (error === undefined || error === null) resolve();
        else reject(new NotSentError(`no connection to ${this.url}`, error));
      });
    });
  }
}
