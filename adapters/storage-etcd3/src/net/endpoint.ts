import { addAbortListener, removeAbortListener } from '@keelson/core/runtime';
import { decodeWatchFrame, type WatchFrame } from '../wire/watch-response.ts';
import type { Call } from './channel.ts';
import { type Connected, Connection, type ConnectionOptions } from './connection.ts';
import { NotSentError, verdictOf } from './etcd-errors.ts';

export interface UnaryOptions {
  /** Time limit of the call, a time of `callClock`. */
  readonly deadline: number;
  /** Time limit of the connection, a time of `callClock`. */
  readonly connectBy: number;
  /** `cancelReads` cancels the call. */
  readonly read: boolean;
  readonly signal?: AbortSignal | undefined;
  /** The call may use a connection that was not inspected. */
  readonly uninspected?: boolean | undefined;
}

/** Makes one call over one connection. */
export type InspectionCall = <T>(method: string, request: Buffer, decode: (answer: Buffer) => T) => Promise<T>;

export interface EndpointOptions extends Omit<ConnectionOptions, 'inspect'> {
  /** Verifies by calls over a new connection that it leads to the opened store; rejects otherwise. */
  readonly inspect: (call: InspectionCall) => Promise<void>;
}

const watchMethod = '/etcdserverpb.Watch/Watch';

/** What a watch receives. `ended` is called once, after all frames. */
export interface WatchHandler {
  frame(frame: WatchFrame): void;
  ended(error: Error | undefined): void;
}

/** A stream for watches. */
export class WatchCall {
  readonly #call: Call;
  readonly #onFailure: (error: Error) => void;

  constructor(call: Call, onFailure: (error: Error) => void) {
    this.#call = call;
    this.#onFailure = onFailure;
  }

  listen(handler: WatchHandler): void {
    this.#call.listen({
      message: (bytes) => handler.frame(decodeWatchFrame(bytes)),
      ended: (error) => {
        if (error !== undefined) this.#onFailure(error);
        handler.ended(error);
      },
    });
  }

  write(request: Buffer): void {
    this.#call.write(request);
  }

  pause(): void {
    this.#call.pause();
  }

  resume(): void {
    this.#call.resume();
  }

  cancel(): void {
    this.#call.cancel();
  }
}

/** One member of the cluster: a connection for calls and one for watches. */
export class Endpoint {
  readonly #calls: Connection;
  readonly #watches: Connection;
  /** Running reads. */
  readonly #reads = new Set<Call>();

  constructor(options: EndpointOptions) {
    const inspect = (connected: Connected, deadline: number) =>
      options.inspect((method, request, decode) =>
        this.#send(connected, method, request, decode, { deadline, read: true }),
      );
    this.#calls = new Connection({ ...options, inspect });
    this.#watches = new Connection({ ...options, inspect });
  }

  /**
   * Makes one call, which is sent at most once. Rejects with NotSentError when there was no connection, otherwise with
   * a CallError.
   */
  unary<T>(method: string, request: Buffer, decode: (answer: Buffer) => T, options: UnaryOptions): Promise<T> {
    const { now } = this.#calls;
    if (now !== undefined) return this.#send(now, method, request, decode, options);
    return this.#calls
      .open(options.connectBy, options.signal, options.uninspected)
      .then((connected) => this.#send(connected, method, request, decode, options));
  }

  /**
   * Opens a stream for watches, on a connection that calls do not use. A member that has lost its leader ends the
   * stream.
   */
  async watch(connectBy: number): Promise<WatchCall> {
    const { channel, token } = this.#watches.now ?? (await this.#watches.open(connectBy));
    const call = channel.open(watchMethod, { token, hasLeader: true });
    return new WatchCall(call, (error) => this.#dropRefusedToken(error, token));
  }

  cancelReads(): void {
    for (const call of this.#reads) call.cancel();
  }

  close(): void {
    this.#calls.close();
    this.#watches.close();
  }

  #send<T>(
    { channel, token }: Connected,
    method: string,
    request: Buffer,
    decode: (answer: Buffer) => T,
    { deadline, read, signal }: Pick<UnaryOptions, 'deadline' | 'read' | 'signal'>,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (signal?.aborted) {
        reject(new NotSentError('the call was aborted', signal.reason));
        return;
      }
      const abort = () => call.cancel();
      const call = channel.unary(method, request, { token, deadline }, decode, (error, answer) => {
        removeAbortListener(signal, abort);
        if (read) this.#reads.delete(call);
        if (error === undefined) {
          resolve(answer as T);
          return;
        }
        this.#dropRefusedToken(error, token);
        reject(error);
      });
      if (read) this.#reads.add(call);
      addAbortListener(signal, abort);
    });
  }

  #dropRefusedToken(error: unknown, token: string | undefined): void {
    if (verdictOf(error) !== 'token') return;
    for (const connection of [this.#calls, this.#watches]) connection.dropToken(token);
  }
}
