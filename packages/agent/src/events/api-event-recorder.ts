import { pause } from '@keelson/client';
import { type ApiClient, type Clock, formatTime, isStatusError, type Logger, type Service } from '@keelson/core';
import { Event } from '@keelson/kinds';
import type { EventRecorder, EventSubject } from '../contracts/event-recorder.ts';
import { TokenBucket } from '../token-bucket.ts';
import { type Correlated, EventCorrelator, type Happening } from './event-correlator.ts';

export interface ApiEventRecorderOptions {
  readonly api: ApiClient;
  readonly component: string;
  readonly host: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** 0 = no limit. */
  readonly qps: number;
  readonly burst: number;
}

interface Sent {
  readonly name: string;
  readonly namespace: string;
  readonly firstTimestamp: string;
  readonly count: number;
}

const maxQueue = 1000;
const maxKept = 4096;
const attempts = 12;
const retryMs = 10_000;

/** Sends events to the API server, one after the other; a repetition raises the count of the event that is there. */
export class ApiEventRecorder implements EventRecorder, Service {
  readonly name = 'events';
  readonly #options: ApiEventRecorderOptions;
  readonly #correlator: EventCorrelator;
  readonly #bucket: TokenBucket | undefined;
  readonly #queue: { readonly happening: Happening; readonly atMs: number }[] = [];
  readonly #sent = new Map<string, Sent>();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #names = 0;

  constructor(options: ApiEventRecorderOptions) {
    this.#options = options;
    this.#correlator = new EventCorrelator(options.clock);
    this.#bucket = options.qps > 0 ? new TokenBucket(options.clock, options.qps, options.burst) : undefined;
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  record(subject: EventSubject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    if (this.#stop.signal.aborted || this.#queue.length >= maxQueue) return;
    this.#queue.push({ happening: { subject, type, reason, message }, atMs: this.#options.clock.now() });
    this.#running ??= this.#drain();
  }

  async #drain(): Promise<void> {
    const { clock, logger } = this.#options;
    const { signal } = this.#stop;
    for (let next = this.#queue.shift(); next !== undefined && !signal.aborted; next = this.#queue.shift()) {
      const correlated = this.#correlator.correlate(next.happening);
      if (correlated === undefined) continue;
      while (this.#bucket?.tryTake() === false && !signal.aborted) await pause(clock, this.#bucket.waitMs(), signal);
      try {
        await this.#sendUntilAnswered(correlated, next.atMs);
      } catch (err) {
        if (!signal.aborted) logger.warn('event was not recorded', { component: 'events', reason: correlated.reason, err });
      }
    }
    this.#running = undefined;
  }

  /** Only what had no answer is tried again: a refusal stays one. */
  async #sendUntilAnswered(event: Correlated, atMs: number): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stop;
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      try {
        await this.#send(event, atMs);
        return;
      } catch (error) {
        if (isStatusError(error) || attempt >= attempts) throw error;
        await pause(clock, retryMs, signal);
      }
    }
  }

  async #send(event: Correlated, atMs: number): Promise<void> {
    const { api } = this.#options;
    const { signal } = this.#stop;
    const lastTimestamp = formatTime(new Date(atMs));
    const before = this.#sent.get(event.key);
    if (before !== undefined) {
      const count = before.count + 1;
      const patch = { count, lastTimestamp, message: event.message };
      try {
        await api.resource(Event).namespace(before.namespace).patch(before.name, 'merge', patch, { signal });
        this.#keep(event.key, { ...before, count });
        return;
      } catch (error) {
        if (!isStatusError(error, 'NotFound')) throw error;
      }
    }
    const made = this.#eventOf(event, atMs, lastTimestamp);
    const { name = '', namespace = '' } = made.metadata ?? {};
    await api.resource(Event).namespace(namespace).create(made, { signal });
    this.#keep(event.key, { name, namespace, firstTimestamp: lastTimestamp, count: 1 });
  }

  #eventOf({ subject, type, reason, message }: Correlated, atMs: number, time: string): Event {
    const { component, host } = this.#options;
    this.#names += 1;
    const suffix = (BigInt(atMs) * 1_000_000n + BigInt(this.#names % 1_000_000)).toString(16);
    const namespace = subject.namespace ?? 'default';
    return {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `${subject.name}.${suffix}`, namespace },
      involvedObject: { ...subject },
      type,
      reason,
      message,
      count: 1,
      firstTimestamp: time,
      lastTimestamp: time,
      source: { component, host },
      reportingComponent: component,
      reportingInstance: host,
    };
  }

  #keep(key: string, sent: Sent): void {
    this.#sent.delete(key);
    this.#sent.set(key, sent);
    const oldest = this.#sent.keys().next();
    if (this.#sent.size > maxKept && !oldest.done) this.#sent.delete(oldest.value);
  }
}
