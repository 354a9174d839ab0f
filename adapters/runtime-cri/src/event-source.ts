import { type ClientReadableStream, status } from '@grpc/grpc-js';
import { EventFeed, type RuntimeEvent } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core';
import { Calls } from './api/calls.ts';
import { ContainerEventResponse } from './api/stats.ts';
import { type CriConnection, isGrpcError } from './connection/cri-connection.ts';

const noRequest = Buffer.alloc(0);
/** After the daemon has answered so many later calls on the same connection, it would have refused the stream. */
const laterCalls = 5;

/** By number. What happens to the container that holds a sandbox open happens to the sandbox. */
const ofContainers = ['containerCreated', 'containerStarted', 'containerExited', 'containerRemoved'] as const;
const ofSandboxes = [undefined, 'sandboxReady', 'sandboxNotReady', 'sandboxRemoved'] as const;

/**
 * Tells what a daemon with `GetContainerEvents` tells. The stream from the daemon is opened with the first one here.
 */
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

  /** Opens the stream; false when the daemon has none. @throws a `RuntimeError` when it does not answer */
  open(signal?: AbortSignal): Promise<boolean> {
    this.#opening ??= this.#open(signal).finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  stream(signal?: AbortSignal): AsyncIterable<RuntimeEvent> {
    const events = this.#feed.stream(signal);
    // What happened while the daemon's stream was being opened is found by the list that follows `resync`.
    if (this.#upstream === undefined && !this.#closed)
      this.open().then(
        (opened) => (opened ? this.#feed.resync() : this.#feed.fail('the daemon tells no events any more')),
        () => this.#feed.fail('the daemon does not answer'),
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
    let lost: unknown;
    stream.on('data', (message: Buffer) => this.#tell(message));
    stream.on('error', (error: unknown) => {
      lost = error;
      this.#lose(stream);
    });
    stream.on('end', () => {
      lost ??= 'ended';
      this.#lose(stream);
    });
    this.#upstream = stream;
    if (this.#closed) stream.cancel();
    for (let count = 0; count < laterCalls && lost === undefined; count += 1)
      await this.#connection.call(Calls.version, {}, signal);
    if (lost === undefined) return true;
    if (!isGrpcError(lost) || lost.code !== status.UNIMPLEMENTED)
      this.#logger.debug('stream of events was refused', { err: lost });
    return false;
  }

  #lose(stream: ClientReadableStream<Buffer>): void {
    if (this.#upstream !== stream) return;
    this.#upstream = undefined;
    this.#feed.fail('the stream of events from the daemon has ended');
  }

  #tell(message: Buffer): void {
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
