import type { Clock } from '@keelson/core/runtime';
import { TokenBucket } from '../retry/token-bucket.ts';

/** The object that an event refers to. */
export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent for nodes. */
  readonly namespace?: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion?: string;
  /** The part of the object, such as `spec.containers{name}`. */
  readonly fieldPath?: string;
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
  /** Number of events of one subject that pass at once, and the rate of further ones. */
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

  /** Undefined when the event exceeds the limit of its subject. */
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
