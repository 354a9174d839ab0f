import { encodeAuthenticate } from '../wire/requests.ts';
import { decodeToken } from '../wire/responses.ts';
import { Channel, type Credentials, callClock } from './channel.ts';
import { CredentialsError, NotSentError } from './etcd-errors.ts';
import { CallError } from './grpc-messages.ts';

export interface ConnectionOptions {
  /** `http://host:port` or `https://host:port`. */
  readonly url: string;
  readonly credentials?: Credentials | undefined;
  readonly auth?: { readonly username: string; readonly password: string } | undefined;
  /** Called with every new channel before any other call uses it; rejects when the channel must not be used. */
  readonly inspect: (connected: Connected, deadline: number) => Promise<void>;
}

/** An open channel, and the token for calls over it when etcd requires authentication. */
export interface Connected {
  readonly channel: Channel;
  readonly token?: string;
}

/** Time limit of an exchange of the password for a token. */
const authenticateMs = 5000;
const authenticateMethod = '/etcdserverpb.Auth/Authenticate';

/** Time limit of the inspection of a new connection. */
const inspectMs = 5000;

/** One connection to one member, which exchanges the password for a token and inspects each new channel. */
export class Connection {
  readonly #url: string;
  readonly #channel: Channel;
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
    this.#channel = new Channel(options.url, options.credentials);
    if (options.auth === undefined) this.#connected = { channel: this.#channel };
  }

  /** The authenticated and inspected connection; undefined unless it can be used without waiting. */
  get now(): Connected | undefined {
    return this.#inspected && this.#channel.ready ? this.#connected : undefined;
  }

  /**
   * Waits for the connection until `connectBy`, a time of `callClock`, and for its inspection unless the call is
   * `uninspected`.
   *
   * @throws NotSentError when there is no connection by then, CredentialsError when etcd refuses the password
   */
  async open(connectBy: number, signal?: AbortSignal, uninspected = false): Promise<Connected> {
    if (this.#closed) throw new NotSentError(`the connection to ${this.#url} is closed`);
    if (!this.#channel.ready) await this.#channel.connected(connectBy, signal);
    const connected = await this.#authenticated();
    if (!uninspected && !this.#inspected) await this.#inspectOnce(connected);
    return connected;
  }

  /** Drops a token that etcd has refused, so that the next call authenticates again. */
  dropToken(refused: string | undefined): void {
    if (this.#auth !== undefined && this.#connected?.token === refused) this.#connected = undefined;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#connected = undefined;
    this.#channel.close();
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
    this.#channel.onBreak(() => {
      broken = true;
      this.#inspected = false;
    });
    await this.#inspect(connected, callClock() + inspectMs);
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
    const token = await this.#requestToken(encodeAuthenticate(username, password));
    this.#connected = { channel: this.#channel, token };
    return this.#connected;
  }

  async #requestToken(request: Buffer): Promise<string> {
    const deadline = callClock() + authenticateMs;
    try {
      return await new Promise((resolve, reject) =>
        this.#channel.unary(authenticateMethod, request, { deadline }, decodeToken, (error, answer) =>
          answer === undefined ? reject(error) : resolve(answer.token),
        ),
      );
    } catch (error) {
      const { message } = error as Error;
      if (error instanceof CallError && /authentication failed|authentication is not enabled/.test(error.details))
        throw new CredentialsError(message, error);
      throw new NotSentError(`no token from ${this.#url}: ${message}`, error);
    }
  }
}
