import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { addAbortListener, removeAbortListener } from '@keelson/core/runtime';
import { NotSentError } from './etcd-errors.ts';
import { CallError, framed, MessageReader, outcomeOf, status } from './grpc-messages.ts';

export interface Credentials {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

/** A dead peer is detected within 10 s while calls run; etcd allows a ping every 5 s. */
const pingEveryMs = 6000;
const pingTimeoutMs = 4000;
const connectLimitMs = 20_000;
const leastBackoffMs = 100;
const longestBackoffMs = 1000;
/** How long a channel that is closed waits for its calls. */
const closeMs = 1000;
/**
 * HTTP/2 flow-control windows: bytes that the server may send before they are read, per call and for all calls
 * together.
 */
const callWindow = 1024 * 1024;
const sessionWindow = 4 * callWindow;

/**
 * The clock of deadlines, in milliseconds. Not injected: calls to another process take real time, and a call that waits
 * keeps this process running, which timers of a `Clock` do not. It is monotonic, so that a change of the system time
 * expires no call. The jitter of the pauses between connections affects no result.
 */
export const callClock = (): number => performance.now();

const ignore = (): void => {};

/** What a call receives. `ended` is called once, after all messages. */
export interface CallHandler {
  message(bytes: Buffer): void;
  ended(error: Error | undefined): void;
}

export interface CallOptions {
  /** Token that authenticates the call; absent when etcd requires no credentials. */
  readonly token?: string | undefined;
  /** Deadline of the call, a time of {@link callClock}; absent for streams. */
  readonly deadline?: number | undefined;
  readonly hasLeader?: boolean;
}

/** One call of gRPC: a stream of HTTP/2. */
export class Call {
  readonly #stream: ClientHttp2Stream;
  readonly #reader = new MessageReader();
  readonly #timer: NodeJS.Timeout | undefined;
  #handler: CallHandler | undefined;
  #outcome: { readonly error: Error | undefined } | undefined;
  #over = false;

  readonly #onOver: () => void;

  /** @param onOver called once at the end, before `ended` */
  constructor(stream: ClientHttp2Stream, deadline: number | undefined, onOver: () => void) {
    this.#stream = stream;
    this.#onOver = onOver;
    // Ignored, because the stream emits `close` after every `error`.
    stream.on('error', ignore);
    stream.on('response', (headers) => {
      this.#outcome = outcomeOf(headers);
    });
    stream.on('trailers', (headers) => {
      this.#outcome ??= outcomeOf(headers);
    });
    stream.on('end', () => {
      if (this.#outcome !== undefined) this.#end(this.#outcome.error);
    });
    stream.on('close', () => this.#end(this.#outcome === undefined ? withoutStatus(stream) : this.#outcome.error));
    if (deadline !== undefined)
      this.#timer = setTimeout(
        () => this.#abandon(new CallError(status.deadlineExceeded, 'Deadline exceeded')),
        Math.max(deadline - callClock(), 0),
      );
  }

  /** Starts to read the answer. */
  listen(handler: CallHandler): void {
    this.#handler = handler;
    if (this.#over) {
      handler.ended(this.#outcome?.error);
      return;
    }
    this.#stream.on('data', (chunk: Buffer) => {
      if (this.#over) return;
      try {
        for (const message of this.#reader.read(chunk)) handler.message(message);
      } catch (error) {
        this.#abandon(error as Error);
      }
    });
  }

  write(message: Uint8Array): void {
    if (!this.#over) this.#stream.write(framed(message));
  }

  /** Sends the only message of a call. */
  finish(message: Uint8Array): void {
    this.#stream.end(framed(message));
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  cancel(): void {
    this.#abandon(new CallError(status.cancelled, 'Cancelled on client'));
  }

  #abandon(error: Error): void {
    if (this.#over) return;
    this.#stream.close(constants.NGHTTP2_CANCEL);
    // Node destroys a stream only after all received data was read, so that the remaining data is read and discarded.
    this.#stream.resume();
    this.#end(error);
  }

  #end(error: Error | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#outcome = { error };
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    this.#onOver();
    this.#handler?.ended(error);
  }
}

/** The error of a stream that the server, or the end of the connection, has closed without an outcome. */
function withoutStatus({ rstCode }: ClientHttp2Stream): CallError {
  switch (rstCode) {
    case constants.NGHTTP2_REFUSED_STREAM:
      return new CallError(status.unavailable, 'Stream refused by server');
    case constants.NGHTTP2_ENHANCE_YOUR_CALM:
      return new CallError(status.unavailable, 'the server asks for fewer requests');
    default:
      return new CallError(status.unavailable, `the connection or the call was closed with code ${rstCode}`);
  }
}

/**
 * gRPC over one connection of HTTP/2 at a time. It connects when it is asked to, pauses between failed attempts, and
 * sends pings while calls run. It never repeats a call.
 */
export class Channel {
  readonly #url: string;
  readonly #credentials: Credentials | undefined;
  #session: ClientHttp2Session | undefined;
  /** The server has sent its settings. */
  #ready = false;
  #attempts = 0;
  #retry: NodeJS.Timeout | undefined;
  #lastError: Error | undefined;
  #closed = false;
  /** Number of running calls. */
  #running = 0;
  readonly #waiters = new Set<() => void>();
  #onBreak: (() => void)[] = [];

  constructor(url: string, credentials: Credentials | undefined) {
    this.#url = url;
    this.#credentials = credentials;
  }

  /** Whether calls can be made now. */
  get ready(): boolean {
    return this.#ready;
  }

  /** Connects, and resolves when calls can be made. @throws NotSentError at `connectBy`, a time of {@link callClock} */
  connected(connectBy: number, signal?: AbortSignal): Promise<void> {
    if (this.#ready) return Promise.resolve();
    if (this.#closed) return Promise.reject(new NotSentError(`the connection to ${this.#url} is closed`));
    return new Promise((resolve, reject) => {
      const end = (action: () => void) => {
        this.#waiters.delete(connected);
        clearTimeout(timer);
        removeAbortListener(signal, abort);
        action();
      };
      const connected = () => end(resolve);
      const abort = () => end(() => reject(new NotSentError('the call was aborted', signal?.reason)));
      const timer = setTimeout(
        () => end(() => reject(new NotSentError(`no connection to ${this.#url}`, this.#lastError))),
        Math.max(connectBy - callClock(), 0),
      );
      if (signal?.aborted) return abort();
      addAbortListener(signal, abort);
      this.#waiters.add(connected);
      this.#connect();
    });
  }

  /** Calls back, once, when the present connection accepts no more calls. */
  onBreak(callback: () => void): void {
    this.#onBreak.push(callback);
  }

  /** Opens a call. @throws NotSentError */
  open(method: string, { token, deadline, hasLeader }: CallOptions): Call {
    const session = this.#session;
    if (session === undefined || !this.#ready) throw new NotSentError(`no connection to ${this.#url}`);
    let stream: ClientHttp2Stream;
    try {
      stream = session.request({
        ':method': 'POST',
        ':path': method,
        te: 'trailers',
        'content-type': 'application/grpc',
        ...(deadline === undefined ? {} : { 'grpc-timeout': timeoutText(deadline) }),
        ...(token === undefined ? {} : { token }),
        ...(hasLeader ? { hasleader: 'true' } : {}),
      });
    } catch (error) {
      throw new NotSentError(`the connection to ${this.#url} broke`, error);
    }
    // An idle connection does not keep the process running.
    if (this.#running++ === 0) session.ref();
    return new Call(stream, deadline, () => {
      this.#running -= 1;
      if (this.#running === 0) this.#session?.unref();
    });
  }

  /** Makes a call with one answer, and calls `done` once. @throws NotSentError */
  unary<T>(
    method: string,
    request: Uint8Array,
    options: CallOptions,
    decode: (answer: Buffer) => T,
    done: (error: unknown, answer?: T) => void,
  ): Call {
    const call = this.open(method, options);
    let answer: Buffer | undefined;
    call.listen({
      message: (bytes) => {
        answer = bytes;
      },
      ended: (error) => {
        if (error !== undefined) return done(error);
        let decoded: T;
        try {
          if (answer === undefined) throw new CallError(status.internal, 'the answer has no message');
          decoded = decode(answer);
        } catch (failure) {
          return done(failure);
        }
        done(undefined, decoded);
      },
    });
    call.finish(request);
    return call;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#retry);
    const session = this.#session;
    this.#broken(session);
    if (session === undefined) return;
    if (session.connecting) session.destroy();
    else {
      session.close();
      setTimeout(() => session.destroy(), closeMs).unref();
    }
  }

  #connect(): void {
    if (this.#closed || this.#session !== undefined || this.#retry !== undefined) return;
    const secure = this.#url.startsWith('https://') ? (this.#credentials ?? {}) : {};
    const session = connect(this.#url, { ...secure, settings: { enablePush: false, initialWindowSize: callWindow } });
    this.#session = session;
    const limit = setTimeout(() => session.destroy(new Error('no answer to the connection in time')), connectLimitMs);
    session.once('connect', () => session.setLocalWindowSize(sessionWindow));
    session.once('remoteSettings', () => {
      clearTimeout(limit);
      if (this.#session !== session) return;
      this.#ready = true;
      this.#attempts = 0;
      this.#keepAlive(session);
      session.unref();
      for (const connected of [...this.#waiters]) connected();
    });
    session.on('error', (error) => {
      this.#lastError = error;
    });
    // Running calls continue; further ones need another connection.
    session.once('goaway', () => this.#broken(session));
    session.once('close', () => {
      clearTimeout(limit);
      this.#broken(session);
    });
  }

  #broken(session: ClientHttp2Session | undefined): void {
    if (session === undefined || this.#session !== session) return;
    this.#session = undefined;
    const failed = !this.#ready;
    this.#ready = false;
    for (const callback of this.#onBreak.splice(0)) callback();
    if (this.#closed) return;
    if (!failed) {
      if (this.#waiters.size > 0) this.#connect();
      return;
    }
    const backoffMs = Math.min(leastBackoffMs * 1.6 ** this.#attempts, longestBackoffMs) * (0.8 + 0.4 * Math.random());
    this.#attempts += 1;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      if (this.#waiters.size > 0) this.#connect();
    }, backoffMs);
    this.#retry.unref();
  }

  /** Destroys a connection that does not answer pings. A connection without calls sends none, as gRPC demands. */
  #keepAlive(session: ClientHttp2Session): void {
    const timer = setInterval(() => {
      if (this.#running === 0 || session.destroyed) return;
      const late = setTimeout(() => session.destroy(new Error('a ping was not answered in time')), pingTimeoutMs);
      late.unref();
      if (!session.ping(() => clearTimeout(late))) clearTimeout(late);
    }, pingEveryMs);
    timer.unref();
    session.once('close', () => clearInterval(timer));
  }
}

/**
 * Formats the time until the deadline for the header `grpc-timeout`. Rounded up to whole seconds: so few different
 * values occur that HTTP/2 compresses the header to one byte.
 */
function timeoutText(deadline: number): string {
  return `${Math.max(Math.ceil((deadline - callClock()) / 1000), 1)}S`;
}
