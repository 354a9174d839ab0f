import { type ChannelCredentials, Client, connectivityState, credentials, Metadata } from '@grpc/grpc-js';
import { addAbortListener, removeAbortListener } from '@keelson/core/runtime';
import { encodeAuthenticate } from '../wire/requests.ts';
import { decodeToken } from '../wire/responses.ts';
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
  /** Called with every new channel before any other call uses it; rejects when the channel must not be used. */
  readonly inspect: (connected: Connected, deadline: number) => Promise<void>;
}

/** What a call needs. */
export interface Connected {
  readonly client: Client;
  /** Contains the token; must not be changed. */
  readonly metadata: Metadata;
}

/** Largest message that is accepted; pages and fragments are much smaller. */
const maxMessageBytes = 64 * 1024 * 1024;
/** Time limit of an exchange of the password for a token. */
const authenticateMs = 5000;
/** How long the closing of a channel waits until the channel has connected. */
const closeMs = 1000;
const authenticateMethod = '/etcdserverpb.Auth/Authenticate';

const channelOptions = {
  'grpc.max_receive_message_length': maxMessageBytes,
  'grpc.max_send_message_length': maxMessageBytes,
  // A dead peer is detected within 10 s; etcd allows a ping every 5 s.
  'grpc.keepalive_time_ms': 6000,
  'grpc.keepalive_timeout_ms': 4000,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  // Otherwise all channels to a member would share one connection.
  'grpc.use_local_subchannel_pool': 1,
  // Otherwise a call whose connection broke would be repeated on the next connection before its inspection.
  'grpc.enable_retries': 0,
};

function channelCredentials({ url, credentials: files }: ConnectionOptions): ChannelCredentials {
  if (!url.startsWith('https://')) return credentials.createInsecure();
  if (files?.ca === undefined) return credentials.createSsl();
  return credentials.createSsl(files.ca, files.key ?? null, files.cert ?? null);
}

/** Time limit of the inspection of a new connection. */
const inspectMs = 5000;

/** One connection to one member, which exchanges the password for a token and inspects each new channel. */
export class Connection {
  readonly #url: string;
  readonly #client: Client;
  readonly #auth: ConnectionOptions['auth'];
  readonly #inspect: ConnectionOptions['inspect'];
  /** Absent until there is a token, and after etcd has refused the token. */
  #connected: Connected | undefined;
  #authenticating: Promise<Connected> | undefined;
  /** The present channel was inspected successfully. */
  #inspected = false;
  #inspecting: Promise<void> | undefined;
  #closed = false;

  constructor(options: ConnectionOptions) {
    this.#url = options.url;
    this.#auth = options.auth;
    this.#inspect = options.inspect;
    this.#client = new Client(options.url.replace(/^https?:\/\//, ''), channelCredentials(options), channelOptions);
    if (options.auth === undefined) this.#connected = { client: this.#client, metadata: new Metadata() };
  }

  /** The authenticated and inspected connection; undefined unless it can be used without waiting. */
  get now(): Connected | undefined {
    const connected = this.#connected;
    if (!this.#inspected) return undefined;
    return connected?.client.getChannel().getConnectivityState(true) === connectivityState.READY
      ? connected
      : undefined;
  }

  /**
   * Waits for the connection until `connectBy`, epoch milliseconds, and for its inspection unless the call is
   * `uninspected`.
   *
   * @throws NotSentError when there is no connection by then, CredentialsError when etcd refuses the password
   */
  async open(connectBy: number, signal?: AbortSignal, uninspected = false): Promise<Connected> {
    if (this.#closed) throw new NotSentError(`the connection to ${this.#url} is closed`);
    if (this.#client.getChannel().getConnectivityState(true) !== connectivityState.READY) {
      await this.#ready(connectBy, signal);
    }
    const connected = await this.#authenticated();
    if (!uninspected && !this.#inspected) await this.#inspectOnce(connected);
    return connected;
  }

  /** Drops a token that etcd has refused, so that the next call authenticates again. */
  dropToken(refused: Metadata): void {
    if (this.#auth !== undefined && this.#connected?.metadata === refused) this.#connected = undefined;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#connected = undefined;
    // A channel that is closed while it connects keeps its socket (https://github.com/grpc/grpc-node/issues/1487).
    if (this.#client.getChannel().getConnectivityState(false) === connectivityState.CONNECTING) {
      this.#client.waitForReady(Date.now() + closeMs, () => setImmediate(() => this.#client.close()));
    } else {
      this.#client.close();
    }
  }

  async #inspectOnce(connected: Connected): Promise<void> {
    // An inspection that has begun may fail because of a token that this caller has replaced.
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

  #authenticated(): Promise<Connected> {
    if (this.#connected !== undefined) return Promise.resolve(this.#connected);
    this.#authenticating ??= this.#authenticate().finally(() => {
      this.#authenticating = undefined;
    });
    return this.#authenticating;
  }

  async #authenticate(): Promise<Connected> {
    const { username = '', password = '' } = this.#auth ?? {};
    const metadata = new Metadata();
    metadata.set('token', await this.#requestToken(encodeAuthenticate(username, password)));
    this.#connected = { client: this.#client, metadata };
    return this.#connected;
  }

  #requestToken(request: Buffer): Promise<string> {
    const deadline = Date.now() + authenticateMs;
    const serialize = (bytes: Buffer) => bytes;
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        authenticateMethod,
        serialize,
        decodeToken,
        request,
        { deadline },
        (error, answer) => {
          if (error === null && answer !== undefined) resolve(answer.token);
          else if (error !== null && /authentication failed|authentication is not enabled/.test(error.details))
            reject(new CredentialsError(error.message, error));
          else reject(new NotSentError(`no token from ${this.#url}: ${error?.message}`, error));
        },
      );
    });
  }

  #ready(connectBy: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = () => reject(new NotSentError('the call was aborted', signal?.reason));
      if (signal?.aborted) return abort();
      addAbortListener(signal, abort);
      this.#client.waitForReady(connectBy, (error) => {
        removeAbortListener(signal, abort);
        if (error === undefined || error === null) resolve();
        else reject(new NotSentError(`no connection to ${this.#url}`, error));
      });
    });
  }
}
