import { type ClientReadableStream, status } from '@grpc/grpc-js';
import { EventFeed, type RuntimeEvent } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core/runtime';
import { Calls } from './api/calls.ts';
import { ContainerEventResponse } from './api/stats.ts';
import { type CriConnection, isGrpcError } from './connection/cri-connection.ts';

const noRequest = Buffer.alloc(0);
/**
 * Number of calls that are made after the event stream was requested. A daemon without events rejects the stream
 * before it has responded to all these calls; otherwise the stream counts as open.
 */
const laterCalls = 5;

/**
 * Event types by number in the protocol. An event of the sandbox container, which owns the namespaces of a sandbox,
 * becomes an event of the sandbox.
 */
const ofContainers = ['containerCreated', 'containerStarted', 'containerExited', 'containerRemoved'] as const;
const ofSandboxes = [undefined, 'sandboxReady', 'sandboxNotReady', 'sandboxRemoved'] as const;

/** Publishes the events of `GetContainerEvents`. The first stream opens the stream of the daemon. */
export class EventSource {
  readonly #connection: CriConnection;
  readonly #logger: Logger;
  readonly #feed: EventFeed;
  #upstream: ClientReadableStream<Buffer> | undefined;
  #opening: Promise<boolean> | undefined;
  #closed = false;

  constructor(connection: CriConnection, clock: Clock, logger: Logger) {
    this.#connection = connection;
    this.#logger = logger;
    this.#feed = new EventFeed(() => clock.now());
  }

  /** Opens the event stream; false if the daemon has none. @throws a `RuntimeError` when the daemon does not respond */
  open(signal?: AbortSignal): Promise<boolean> {
    this.#opening ??= this.#open(signal).finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  stream(signal?: AbortSignal): AsyncIterable<RuntimeEvent> {
    const events = this.#feed.stream(signal);
    // Events are missed while the daemon's stream is being opened, so consumers receive `resync` and list again.
    if (this.#upstream === undefined && !this.#closed)
      this.open().then(
        (opened) => (opened ? this.#feed.resync() : this.#feed.fail('the daemon no longer supports events')),
        () => this.#feed.fail('the daemon does not respond'),
      );
    return events;
  }

  close(): void {
    this.#closed = true;
    this.#upstream?.cancel();
    this.#feed.close();
  }

  async #open(signal?: AbortSignal): Promise<boolean> {
    if (this.#upstream !== undefined) return true;
    const stream = await this.#connection.stream('RuntimeService', 'GetContainerEvents', noRequest);
    let failure: unknown;
    stream.on('data', (message: Buffer) => this.#publish(message));
    stream.on('error', (error: unknown) => {
      failure = error;
      this.#disconnected(stream);
    });
    stream.on('end', () => {
      failure ??= 'ended';
      this.#disconnected(stream);
    });
    this.#upstream = stream;
    if (this.#closed) stream.cancel();
    for (let count = 0; count < laterCalls && failure === undefined; count += 1)
      await this.#connection.call(Calls.version, {}, signal);
    if (failure === undefined) return true;
    if (!isGrpcError(failure) || failure.code !== status.UNIMPLEMENTED)
      this.#logger.debug('the daemon rejected the event stream', { err: failure });
    return false;
  }

  #disconnected(stream: ClientReadableStream<Buffer>): void {
    if (this.#upstream !== stream) return;
    this.#upstream = undefined;
    this.#feed.fail('the event stream of the daemon has ended');
  }

  #publish(message: Buffer): void {
    const {
      containerId = '',
      containerEventType = 0,
      createdAt = 0,
      podSandboxStatus,
    } = ContainerEventResponse.decode(message);
    const sandboxId = podSandboxStatus?.id ?? '';
    if (containerId === sandboxId || sandboxId === '') {
      const type = ofSandboxes[containerEventType];
      if (type !== undefined) this.#feed.publish({ type, sandboxId: containerId, at: createdAt });
      return;
    }
    const type = ofContainers[containerEventType];
    if (type !== undefined) this.#feed.publish({ type, containerId, sandboxId, at: createdAt });
  }
}
