import { addAbortListener, removeAbortListener } from '@keelson/core/runtime';
import type { ContainerId } from './container.ts';
import { RuntimeError } from './runtime-error.ts';
import type { SandboxId } from './sandbox.ts';

/**
 * A change of a sandbox or container. An event is a hint: `containerStatus` and the lists contain the actual state.
 *
 * The first event of a stream is always `resync`. Every later change is reported, so a consumer lists once after
 * `resync`. The runtime sends `resync` again when events may have been lost. Events of one container are in order.
 */
export type RuntimeEvent =
  | { readonly type: 'resync'; readonly at: number }
  | {
      readonly type: 'containerCreated' | 'containerStarted' | 'containerExited' | 'containerRemoved';
      readonly containerId: ContainerId;
      readonly sandboxId: SandboxId;
      /** Time of the change in epoch milliseconds. */
      readonly at: number;
    }
  | {
      readonly type: 'sandboxReady' | 'sandboxNotReady' | 'sandboxRemoved';
      readonly sandboxId: SandboxId;
      readonly at: number;
    };

interface Subscriber {
  queue: RuntimeEvent[];
  wake: (() => void) | undefined;
  failure: RuntimeError | undefined;
  ended: boolean;
}

/** Number of queued events of a consumer beyond which they are replaced by one `resync`. */
const defaultCapacity = 10_000;

/** Distributes the events of a runtime to any number of streams, each beginning with `resync`; see `RuntimeEvent`. */
export class EventFeed {
  readonly #subscribers = new Set<Subscriber>();
  readonly #now: () => number;
  readonly #capacity: number;
  #closed = false;

  constructor(now: () => number, capacity = defaultCapacity) {
    this.#now = now;
    this.#capacity = capacity;
  }

  publish(event: RuntimeEvent): void {
    for (const subscriber of this.#subscribers) {
      if (subscriber.queue.length >= this.#capacity) subscriber.queue = [{ type: 'resync', at: this.#now() }];
      else subscriber.queue.push(event);
      subscriber.wake?.();
    }
  }

  /** Requests all consumers to list again. */
  resync(): void {
    this.publish({ type: 'resync', at: this.#now() });
  }

  /** Ends all streams with `Unavailable`; new streams can be opened. */
  fail(message: string): void {
    for (const subscriber of this.#subscribers) {
      subscriber.failure = new RuntimeError('Unavailable', message);
      subscriber.wake?.();
    }
  }

  /** Ends all streams without an error. Streams that are opened later end immediately. */
  close(): void {
    this.#closed = true;
    for (const subscriber of this.#subscribers) {
      subscriber.ended = true;
      subscriber.wake?.();
    }
  }

  /** Opens a stream. The subscription begins with this call, not with the first `next`. */
  stream(signal?: AbortSignal): AsyncIterable<RuntimeEvent> {
    const subscriber: Subscriber = {
      queue: [{ type: 'resync', at: this.#now() }],
      wake: undefined,
      failure: undefined,
      ended: this.#closed || signal?.aborted === true,
    };
    const end = () => {
      subscriber.ended = true;
      subscriber.wake?.();
    };
    this.#subscribers.add(subscriber);
    addAbortListener(signal, end);
    const release = () => {
      this.#subscribers.delete(subscriber);
      removeAbortListener(signal, end);
    };
    return {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          for (;;) {
            if (subscriber.ended) {
              release();
              return { done: true, value: undefined };
            }
            const event = subscriber.queue.shift();
            if (event !== undefined) return { done: false, value: event };
            if (subscriber.failure !== undefined) {
              release();
              subscriber.ended = true;
              throw subscriber.failure;
            }
            await new Promise<void>((resolve) => {
              subscriber.wake = resolve;
            });
            subscriber.wake = undefined;
          }
        },
        return: async () => {
          end();
          release();
          return { done: true, value: undefined };
        },
      }),
    };
  }
}
