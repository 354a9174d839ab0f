import type { ClientDuplexStream, ClientUnaryCall, Metadata } from '@grpc/grpc-js';
import { addAbortListener, removeAbortListener } from '@keelson/core/runtime';
import { decodeWatchFrame, type WatchFrame } from '../wire/watch-response.ts';
import { type Connected, Connection, type ConnectionOptions } from './connection.ts';
import { NotSentError, verdictOf } from './etcd-errors.ts';

export interface UnaryOptions {
  /** Time limit of the call, epoch milliseconds. */
  readonly deadline: number;
  /** Time limit of the connection, epoch milliseconds. */
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

export type WatchCall = ClientDuplexStream<Buffer, WatchFrame>;

const same = (bytes: Buffer): Buffer => bytes;
const watchMethod = '/etcdserverpb.Watch/Watch';

/** One member of the cluster: a connection for calls and one for watches. */
export class Endpoint {
  readonly #calls: Connection;
  readonly #watches: Connection;
  /** Running reads. */
  readonly #reads = new Set<ClientUnaryCall>();

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
   * the error of grpc-js.
   */
  unary<T>(method: string, request: Buffer, decode: (answer: Buffer) => T, options: UnaryOptions): Promise<T> {
    const { now } = this.#calls;
    if (now !== undefined) return this.#send(now, method, request, decode, options);
    return this.#calls
      .open(options.connectBy, options.signal, options.uninspected)
      .then((connected) => this.#send(connected, method, request, decode, options));
  }

  /** Opens a stream for watches, on a connection that calls do not use. A member that loses its leader ends it. */
  async watch(connectBy: number): Promise<WatchCall> {
    const { client, metadata } = this.#watches.now ?? (await this.#watches.open(connectBy));
    const own = metadata.clone();
    own.set('hasleader', 'true');
    const call = client.makeBidiStreamRequest(watchMethod, same, decodeWatchFrame, own);
    call.on('error', (error) => this.#dropRefusedToken(error, metadata));
    return call;
  }

  cancelReads(): void {
    for (const call of this.#reads) call.cancel();
  }

  close(): void {
    this.#calls.close();
    this.#watches.close();
  }

  #send<T>(
    { client, metadata }: Connected,
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
      const call = client.makeUnaryRequest(method, same, decode, request, metadata, { deadline }, (error, answer) => {
        removeAbortListener(signal, abort);
        if (read) this.#reads.delete(call);
        if (error === null) {
          resolve(answer as T);
          return;
        }
        this.#dropRefusedToken(error, metadata);
        reject(error);
      });
      const abort = () => call.cancel();
      if (read) this.#reads.add(call);
      addAbortListener(signal, abort);
    });
  }

  #dropRefusedToken(error: Error, metadata: Metadata): void {
    if (verdictOf(error) !== 'token') return;
    for (const connection of [this.#calls, this.#watches]) connection.dropToken(metadata);
  }
}
