import type { Clock } from '@keelson/core';
import type { EventSubject } from '../contracts/event-recorder.ts';
import { TokenBucket } from '../token-bucket.ts';

export interface Happening {
  readonly subject: EventSubject;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** What to tell about something that happened. */
export interface Correlated extends Happening {
  /** Happenings that are told as one have the same key. */
  readonly key: string;
}

interface Similar {
  readonly sinceMs: number;
  readonly messages: Set<string>;
}

const burst = 25;
const perSecond = 1 / 300;
const similarWindowMs = 600_000;
const maxSimilar = 10;
const maxKept = 4096;

/**
 * Keeps one object from flooding the API with events (agent.md B.9): at most 25 at once and one in five minutes per object, and more than ten
 * different messages of one reason within ten minutes become one.
 */
export class EventCorrelator {
  readonly #clock: Clock;
  readonly #buckets = new Map<string, TokenBucket>();
  readonly #similar = new Map<string, Similar>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Undefined: too much has been said about the object lately. */
  correlate(happening: Happening): Correlated | undefined {
    const { subject, type, reason, message } = happening;
    const object = [subject.kind, subject.namespace, subject.name, subject.uid].join('/');
    const bucket = kept(this.#buckets, object, () => new TokenBucket(this.#clock, perSecond, burst));
    if (!bucket.tryTake()) return undefined;
    const group = [object, subject.fieldPath, type, reason].join('/');
    const nowMs = this.#clock.monotonic();
    let similar = kept(this.#similar, group, () => ({ sinceMs: nowMs, messages: new Set<string>() }));
    if (nowMs - similar.sinceMs > similarWindowMs) {
      similar = { sinceMs: nowMs, messages: new Set() };
      this.#similar.set(group, similar);
    }
    if (similar.messages.size <= maxSimilar) similar.messages.add(message);
    if (similar.messages.size <= maxSimilar) return { ...happening, key: `${group}/${message}` };
    return { ...happening, message: `(combined from similar events): ${message}`, key: group };
  }
}

/** The value of a key, made if needed; the oldest goes when there are too many. */
function kept<V>(map: Map<string, V>, key: string, make: () => V): V {
  const value = map.get(key) ?? make();
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= maxKept) break;
    map.delete(oldest);
  }
  return value;
}
