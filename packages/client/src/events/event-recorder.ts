import { type ApiClient, formatTime, isStatusError, type KubeObject } from '@keelson/core';
import { type Clock, type Logger, pause } from '@keelson/core/runtime';
import { isConnectionError } from '../http/connection-error.ts';
import { TokenBucket } from '../retry/rate-limits.ts';

/** The object that an event refers to. */
export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  /** Namespace of the object; absent for a node. */
  readonly namespace?: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion?: string;
  /** The part of the object, such as `spec.containers{name}`. */
  readonly fieldPath?: string;
}

/** Records events about objects. */
export interface EventRecorder {
  /** Never throws and never waits. An event that cannot be sent is dropped. */
  record(subject: EventSubject, type: 'Normal' | 'Warning', reason: string, message: string): void;
}

/** An event recorder that discards all events, for programs without an API server. */
export const noEvents: EventRecorder = { record: () => {} };

/** Who reports an event. */
export interface EventSource {
  /** Name of the program or controller. */
  readonly component: string;
  /** Name of the node. */
  readonly host?: string;
}

/** Options of an {@link ApiEventRecorder}. */
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
/** Maximum length of a message. The server rejects longer ones. */
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
    // Clients of events.k8s.io and field selectors find the events of a program by these fields.
    reportingComponent: source.component,
    reportingInstance: source.host ?? '',
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

/** A map with a limited number of entries; the least recently used entry is removed first. */
class RecentMap<V> {
  readonly #entries = new Map<string, V>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns the entry of the key, created by `make` if it is absent. */
  getOr(key: string, make: () => V): V {
    const known = this.#entries.get(key);
    const value = known ?? make();
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size > this.#limit) {
      const [oldest] = this.#entries.keys();
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    return value;
  }
}

/** An event as it was recorded. */
export interface Happening {
  readonly subject: EventSubject;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** The event object to send: a repetition of an earlier event, or a new event. */
export interface CorrelatedEvent extends Happening {
  /** Name of the event object; the same for repetitions. */
  readonly name: string;
  /** Number of occurrences so far. */
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

/** The limits of Kubernetes: see docs/reference/agent-rules.md#events. */
const limits = {
  /** Burst and rate of the events of one subject. Further events are dropped. */
  spamBurst: 25,
  spamPerSecond: 1 / 300,
  /**
   * Up to this number of distinct messages of one kind within `similarForMs` are separate events; further ones are
   * combined.
   */
  distinctMessages: 10,
  similarForMs: 600_000,
  /** Number of subjects, kinds and events that are tracked. */
  remembered: 4096,
};

const combinedPrefix = '(combined from similar events): ';

interface Similar {
  readonly messages: Set<string>;
  lastMs: number;
}

interface Sent {
  readonly name: string;
  readonly firstMs: number;
  count: number;
}

const keyOf = (...parts: readonly (string | undefined)[]): string => JSON.stringify(parts);

/** Reduces the number of events: drops spam, counts repetitions, and combines similar events. */
export class EventCorrelator {
  readonly #clock: Clock;
  readonly #buckets = new RecentMap<TokenBucket>(limits.remembered);
  readonly #similar = new RecentMap<Similar>(limits.remembered);
  readonly #sent = new RecentMap<Sent>(limits.remembered);
  #lastStamp = 0n;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Correlates an event with earlier ones; undefined when the event exceeds the limit of its subject. */
  take(happening: Happening): CorrelatedEvent | undefined {
    const { subject, type, reason } = happening;
    const about = keyOf(subject.apiVersion, subject.kind, subject.namespace, subject.name, subject.uid);
    const bucket = this.#buckets.getOr(
      about,
      () => new TokenBucket(this.#clock, limits.spamPerSecond, limits.spamBurst),
    );
    if (!bucket.tryTake()) return undefined;
    const nowMs = this.#clock.now();
    const kind = keyOf(about, subject.fieldPath, type, reason);
    const combined = this.#isOneOfMany(kind, happening.message, nowMs);
    const message = combined ? `${combinedPrefix}${happening.message}` : happening.message;
    const key = combined ? kind : keyOf(kind, message);
    const sent = this.#sent.getOr(key, () => ({ name: this.#name(subject.name, nowMs), firstMs: nowMs, count: 0 }));
    sent.count += 1;
    return { ...happening, message, name: sent.name, count: sent.count, firstMs: sent.firstMs, lastMs: nowMs };
  }

  #isOneOfMany(kind: string, message: string, nowMs: number): boolean {
    const similar = this.#similar.getOr(kind, () => ({ messages: new Set<string>(), lastMs: nowMs }));
    if (nowMs - similar.lastMs > limits.similarForMs) similar.messages.clear();
    similar.lastMs = nowMs;
    if (similar.messages.has(message)) return false;
    if (similar.messages.size >= limits.distinctMessages) return true;
    similar.messages.add(message);
    return false;
  }

  /** The name of the subject and a time that no other event of this recorder has. */
  #name(subject: string, nowMs: number): string {
    const stamp = BigInt(Math.floor(nowMs)) * 1_000_000n;
    this.#lastStamp = stamp > this.#lastStamp ? stamp : this.#lastStamp + 1n;
    return `${subject}.${this.#lastStamp.toString(16)}`;
  }
}
