import { type Client, connectivityState, type Metadata } from '@grpc/grpc-js';
import { addAbortListener, removeAbortListener } from '@keelson/core';
import { ConnectionPool } from 'etcd3/lib/connection-pool.js';
import { CredentialsError, NotSentError } from './etcd-errors.ts';

export interface Credentials {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

export interface ConnectionOptions {
  /** `http://host:port` or `https://host:port`. */
  readonly url: string;
  readonly credentials?: Credentials | undefined;
  readonly auth?: { readonly username: string; readonly password: string } | undefined;
  /** Called over every new connection before anything else is sent over it; rejects when it may not be used. */
  readonly inspect: (connected: Connected, deadline: number) => Promise<void>;
}

/** What a call is made with. */
export interface Connected {
  readonly client: Client;
  /** Holds the token; not to be changed. */
  readonly metadata: Metadata;
}

type PoolOptions = ConstructorParameters<typeof ConnectionPool>[0];

/** The library's own retries repeat writes whose answer was lost, so neither its policies nor its breaker are used. */
const noPolicy = { execute: (call: () => unknown) => call() } as unknown as never;

/** Largest message accepted: pages and fragments are kept well below. */
const maxMessageBytes = 64 * 1024 * 1024;
const renewMs = 5000;

const channelOptions = {
  'grpc.max_receive_message_length': maxMessageBytes,
  'grpc.max_send_message_length': maxMessageBytes,
  // A peer that has vanished is noticed within 10 s; etcd allows a ping every 5 s.
  'grpc.keepalive_time_ms': 6000,
  'grpc.keepalive_timeout_ms': 4000,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  // Otherwise all channels to a member would share one connection.
  'grpc.use_local_subchannel_pool': 1,
  // Otherwise a call whose connection broke would go over the next one before that is inspected.
  'grpc.enable_retries': 0,
};

function poolOptions({ url, credentials, auth }: ConnectionOptions): PoolOptions {
  const { ca, cert, key } = credentials ?? {};
  return {
    hosts: [url],
    grpcOptions: channelOptions,
    faultHandling: { host: () => noPolicy, global: noPolicy },
    ...(auth === undefined ? {} : { auth }),
    ...(ca === undefined
      ? {}
      : { credentials: { rootCertificate: ca, ...(key && { privateKey: key }), ...(cert && { certChain: cert }) } }),
  };
}

/** How long the inspection of a new connection may take. */
const inspectMs = 5000;

/**
 * One connection to one member, made by the etcd3 library, which also does TLS and exchanges the password for a token.
 */
export class Connection {
  readonly #url: string;
  readonly #pool: ConnectionPool;
  /** Kept while the token is good. */
  #known: Connected | undefined;
  #renewing: Promise<void> | undefined;
  readonly #inspect: ConnectionOptions['inspect'];
  /** The connection that stands now was inspected, and with success. */
  #inspected = false;
  #inspecting: Promise<void> | undefined;

  constructor(options: ConnectionOptions) {
    this.#url = options.url;
    this.#inspect = options.inspect;
    this.#pool = new ConnectionPool(poolOptions(options));
  }

  /** What there is to call with right now; undefined when it takes waiting. */
  get now(): Connected | undefined {
    const known = this.#known;
    if (!this.#inspected) return undefined;
    return known?.client.getChannel().getConnectivityState(true) === connectivityState.READY ? known : undefined;
  }

  /**
   * Waits for the connection until `connectBy`, epoch milliseconds, and for its inspection unless the call is
   * `uninspected`.
   *
   * @throws NotSentError when there is none by then, CredentialsError when etcd does not take the password
   */
  async open(connectBy: number, signal?: AbortSignal, uninspected = false): Promise<Connected> {
    const connected = await this.#authenticated();
    if (connected.client.getChannel().getConnectivityState(true) !== connectivityState.READY) {
      await this.#ready(connected.client, connectBy, signal);
    }
    if (!uninspected && !this.#inspected) await this.#inspectOnce(connected);
    return connected;
  }

  /** Makes the library ask for a new token: a call of its own notices that the old one is refused. */
  renewToken(): Promise<void> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  close(): void {
    this.#known = undefined;
    this.#pool.close();
  }

  async #inspectOnce(connected: Connected): Promise<void> {
    // One that is under way may fail because of a token that this caller has replaced.
    await this.#inspecting?.catch(() => {});
    if (this.#inspected) return;
    this.#inspecting ??= this.#runInspection(connected).finally(() => {
      this.#inspecting = undefined;
    });
    await this.#inspecting;
  }

  async #runInspection(connected: Connected): Promise<void> {
    let broken = false;
    connected.client.getChannel().watchConnectivityState(connectivityState.READY, Number.POSITIVE_INFINITY, () => {
      broken = true;
      this.#inspected = false;
    });
    await this.#inspect(connected, Date.now() + inspectMs);
    if (broken) throw new NotSentError(`the connection to ${this.#url} broke while it was inspected`);
    this.#inspected = true;
  }

  async #renew(): Promise<void> {
    try {
      await this.#pool.exec('KV', 'range', { key: Buffer.from('\0'), limit: 1 }, { deadline: Date.now() + renewMs });
    } finally {
      this.#known = undefined;
    }
  }

  async #authenticated(): Promise<Connected> {
    if (this.#known !== undefined) return this.#known;
    try {
      this.#known = await this.#pool.withConnection('KV', ({ client, metadata }) => ({ client, metadata }));
      return this.#known;
    } catch (error) {
      const { message } = error as Error;
      if (/authentication failed|authentication is not enabled/.test(message))
        throw new CredentialsError(message, error);
      throw new NotSentError(`no token from ${this.#url}: ${message}`, error);
    }
  }

  #ready(client: Client, connectBy: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = () => reject(new NotSentError('the call was aborted', signal?.reason));
      if (signal?.aborted) return abort();
      addAbortListener(signal, abort);
      client.waitForReady(connectBy, (error) => {
        removeAbortListener(signal, abort);
        if (error === undefined || error === null) resolve();
        else reject(new NotSentError(`no connection to ${this.#url}`, error));
      });
    });
  }
}
