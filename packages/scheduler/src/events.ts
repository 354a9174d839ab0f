import { type ApiClient, formatTime } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import { Event } from '@keelson/kinds';
import type { PodInfo } from './cluster/pod-info.ts';

export interface PodEventsOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Name in `source` and `reportingComponent`. */
  readonly component: string;
}

interface Recorded {
  name: string;
  count: number;
}

const concurrentWrites = 8;
/** Events beyond this number are dropped while the server is slow. */
const maxWaiting = 10_000;
/** Events whose repetition is counted. */
const maxRecorded = 4_096;
const maxMessage = 1_024;

/** Records events about pods in the background. An event that repeats is counted instead of created again. */
export class PodEvents {
  readonly #options: PodEventsOptions;
  readonly #waiting: (() => Promise<void>)[] = [];
  /** By pod, reason and message; the least recently repeated first. */
  readonly #recorded = new Map<string, Recorded>();
  #running = 0;
  #stopped = false;
  #idle: (() => void)[] = [];
  #serial = 0;

  constructor(options: PodEventsOptions) {
    this.#options = options;
  }

  record(pod: PodInfo, type: 'Normal' | 'Warning', reason: string, text: string): void {
    if (this.#stopped || this.#waiting.length >= maxWaiting) return;
    const message = text.length > maxMessage ? `${text.slice(0, maxMessage - 4)} ...` : text;
    this.#waiting.push(() => this.#write(pod, type, reason, message));
    this.#run();
  }

  /** Drops events that are not being written, and waits for those that are. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#waiting.length = 0;
    if (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #run(): void {
    while (this.#running < concurrentWrites) {
      const write = this.#waiting.shift();
      if (write === undefined) break;
      this.#running += 1;
      void write()
        .catch((err: unknown) => {
          this.#options.logger.debug('event not recorded', { component: this.#options.component, err });
        })
        .finally(() => {
          this.#running -= 1;
          this.#run();
        });
    }
    if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  async #write(pod: PodInfo, type: string, reason: string, message: string): Promise<void> {
    const { client, clock, component } = this.#options;
    const events = client.resource(Event).namespace(pod.namespace);
    const now = formatTime(new Date(clock.now()));
    const id = `${pod.uid}/${reason}/${message}`;
    const before = this.#recorded.get(id);
    if (before !== undefined) {
      this.#recorded.delete(id);
      this.#recorded.set(id, before);
      before.count += 1;
      try {
        await events.patch(before.name, 'merge', { count: before.count, lastTimestamp: now });
        return;
      } catch {
        // The event has expired.
        this.#recorded.delete(id);
      }
    }
    this.#serial += 1;
    const name = `${pod.name.slice(0, 220)}.${clock.now().toString(16)}${this.#serial.toString(16).padStart(6, '0')}`;
    await events.create({
      metadata: { name, namespace: pod.namespace },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace: pod.namespace, name: pod.name, uid: pod.uid },
      type,
      reason,
      message,
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
      source: { component },
      reportingComponent: component,
      reportingInstance: '',
    });
    for (const oldest of this.#recorded.keys()) {
      if (this.#recorded.size < maxRecorded) break;
      this.#recorded.delete(oldest);
    }
    // Assignments do not repeat.
    if (type === 'Warning') this.#recorded.set(id, { name, count: 1 });
  }
}
