import type { Clock } from '@keelson/core';
import type { EventSubject } from '../contracts/event-recorder.ts';
import { TokenBucket } from '../token-bucket.ts';

/** A map that holds a limited number of entries and forgets those that were not asked for the longest. */
export class RecentMap<V> {
  readonly #entries = new Map<string, V>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The entry, made if there is none. */
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

/** Something that happened, as it was told. */
export interface Happening {
  readonly subject: EventSubject;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** What shall be sent of a happening: one and the same event as before, once more, or a new one. */
export interface CorrelatedEvent extends Happening {
  /** Name of the event object; the same for repeats. */
  readonly name: string;
  /** How often it happened so far. */
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

/** See docs/reference/agent-rules.md#events. */
const limits = {
  /** Happenings of one subject that pass at once, and how fast more may follow. */
  spamBurst: 25,
  spamPerSecond: 1 / 300,
  /** Distinct messages of one kind within this time are told one by one; what follows is combined. */
  distinctMessages: 10,
  similarForMs: 600_000,
  /** Subjects, kinds of happenings and events remembered; the least recent are forgotten. */
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

/**
 * Keeps what happens over and over from becoming as many events: drops spam, counts repeats, and combines what is
 * alike.
 */
export class EventCorrelator {
  readonly #clock: Clock;
  readonly #buckets = new RecentMap<TokenBucket>(limits.remembered);
  readonly #similar = new RecentMap<Similar>(limits.remembered);
  readonly #sent = new RecentMap<Sent>(limits.remembered);
  #lastStamp = 0n;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Undefined when the happening is one too many of its subject. */
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

  /** The subject's name and a moment no other event of this agent has. */
  #name(subject: string, nowMs: number): string {
    const stamp = BigInt(Math.floor(nowMs)) * 1_000_000n;
    this.#lastStamp = stamp > this.#lastStamp ? stamp : this.#lastStamp + 1n;
    return `${subject}.${this.#lastStamp.toString(16)}`;
  }
}
