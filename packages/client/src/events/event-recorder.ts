import { type ApiClient, formatTime, isStatusError, type KubeObject } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import { isConnectionError } from '../http/connection-error.ts';
import { pause } from '../retry/backoff.ts';
import { TokenBucket } from '../retry/token-bucket.ts';
import { type CorrelatedEvent, EventCorrelator, type EventSubject } from './event-correlator.ts';

/** Records events about objects. */
export interface EventRecorder {
  /** Never throws and never waits. An event that cannot be sent is dropped. */
  record(subject: EventSubject, type: 'Normal' | 'Warning', reason: string, message: string): void;
}

/** For programs without an API server. */
export const noEvents: EventRecorder = { record: () => {} };

/** Who reports an event. */
export interface EventSource {
  /** Name of the program or controller. */
  readonly component: string;
  /** Name of the node. */
  readonly host?: string;
}

export interface ApiEventRecorderOptions {
  /** A client without a rate limit of its own, so that events do not use up the limit of other requests. */
  readonly client: ApiClient;
  readonly source: EventSource;
  /** Average number of events per second; 0 = no limit. */
  readonly qps: number;
  readonly burst: number;
  /** Events that wait while the server is slow or cannot be reached; further ones are dropped. Default 1000. */
  readonly maxQueued?: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** See docs/reference/agent-rules.md#events. */
const defaultMaxQueued = 1000;
const maxTries = 12;
const retryMs = 10_000;
/** The server rejects longer messages. */
const maxMessage = 1024;

const events = { group: '', version: 'v1', resource: 'events' } as const;

function eventOf(event: CorrelatedEvent, source: EventSource) {
  const { subject, type, reason, message, name, count, firstMs, lastMs } = event;
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name, namespace: namespaceOf(subject) },
    involvedObject: { ...subject },
    type,
    reason,
    message: message.length > maxMessage ? `${message.slice(0, maxMessage - 3)}...` : message,
    source,
    firstTimestamp: formatTime(new Date(firstMs)),
    lastTimestamp: formatTime(new Date(lastMs)),
    count,
  };
}

/** Events of nodes, which have no namespace, are created in the default namespace. */
function namespaceOf({ namespace = '' }: EventSubject): string {
  return namespace === '' ? 'default' : namespace;
}

/**
 * Sends events to the API server, one at a time and within the rate limit. A limited number of events is queued while
 * the server cannot be reached; further events are dropped.
 */
export class ApiEventRecorder implements EventRecorder {
  readonly #options: ApiEventRecorderOptions;
  readonly #correlator: EventCorrelator;
  readonly #bucket: TokenBucket | undefined;
  readonly #abort = new AbortController();
  readonly #queue: CorrelatedEvent[] = [];
  #sending: Promise<void> | undefined;
  #dropped = 0;

  constructor(options: ApiEventRecorderOptions) {
    this.#options = options;
    const { clock, qps, burst } = options;
    this.#correlator = new EventCorrelator(clock);
    this.#bucket = qps === 0 ? undefined : new TokenBucket(clock, qps, burst);
  }

  record(subject: EventSubject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    if (this.#abort.signal.aborted) return;
    const event = this.#correlator.take({ subject, type, reason, message });
    if (event === undefined) return;
    if (this.#queue.length >= (this.#options.maxQueued ?? defaultMaxQueued)) {
      this.#dropped += 1;
      if (this.#dropped === 1) this.#options.logger.warn('events are dropped because the queue is full');
      return;
    }
    this.#queue.push(event);
    this.#sending ??= this.#send();
  }

  /** Queued events are discarded. */
  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#sending;
  }

  async #send(): Promise<void> {
    const { signal } = this.#abort;
    for (let event = this.#queue.shift(); event !== undefined && !signal.aborted; event = this.#queue.shift()) {
      try {
        await this.#sendOne(event);
      } catch (err) {
        if (!signal.aborted)
          this.#options.logger.warn('event was not sent', { reason: event.reason, subject: event.subject.name, err });
      }
      if (this.#queue.length === 0) this.#dropped = 0;
    }
    this.#sending = undefined;
  }

  /** Retries only connection errors: a request that the server has rejected would be rejected again. */
  async #sendOne(event: CorrelatedEvent): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      await this.#turn();
      if (this.#abort.signal.aborted) return;
      try {
        return await this.#put(event);
      } catch (error) {
        if (!isConnectionError(error) || tries === maxTries) throw error;
        await pause(this.#options.clock, retryMs, this.#abort.signal);
      }
    }
  }

  async #turn(): Promise<void> {
    const bucket = this.#bucket;
    while (bucket !== undefined && !this.#abort.signal.aborted && !bucket.tryTake()) {
      await pause(this.#options.clock, bucket.waitMs(), this.#abort.signal);
    }
  }

  async #put(event: CorrelatedEvent): Promise<void> {
    const { client, source } = this.#options;
    const { signal } = this.#abort;
    const namespaced = client.dynamic(events).namespace(namespaceOf(event.subject));
    const whole = eventOf(event, source);
    if (event.count > 1) {
      const { count, lastTimestamp, message } = whole;
      try {
        await namespaced.patch(event.name, 'merge', { count, lastTimestamp, message }, { signal });
        return;
      } catch (error) {
        // The server deletes events after an hour.
        if (!isStatusError(error, 'NotFound')) throw error;
      }
    }
    try {
      await namespaced.create(whole as KubeObject, { signal });
    } catch (error) {
      // An earlier attempt without an answer may have created the event.
      if (!isStatusError(error, 'AlreadyExists')) throw error;
    }
  }
}
