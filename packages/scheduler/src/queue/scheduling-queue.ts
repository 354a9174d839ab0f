import type { Clock } from '@keelson/core/runtime';
import type { ClusterChange } from '../cluster/cluster-state.ts';
import { isSameLabels, type PodInfo } from '../cluster/pod-info.ts';
import { Heap } from './heap.ts';

/** State of a pod without a node in the queue. `attempted`: a decision about the pod is being made or written. */
export type QueuePlace = 'active' | 'backoff' | 'unschedulable' | 'gated' | 'attempted';

/** A pod that waits for a node. */
export interface QueuedPod {
  readonly pod: PodInfo;
  readonly attempts: number;
  /** Epoch milliseconds at which the pod was queued, or at which its last attempt ended. */
  readonly queuedMs: number;
  /** Epoch milliseconds of the time at which it was first queued. */
  readonly firstQueuedMs: number;
}

interface Entry extends QueuedPod {
  pod: PodInfo;
  attempts: number;
  queuedMs: number;
  firstQueuedMs: number;
  place: QueuePlace;
  /** Monotonic time before which the pod is not tried again. */
  readyAt: number;
  /** Monotonic time at which the pod became unschedulable. */
  failedAt: number;
  retryAfter: ReadonlySet<ClusterChange>;
}

/** Decides which of two pods is tried first: negative when it is the first one. */
export type QueueOrder = (a: QueuedPod, b: QueuedPod) => number;

/** The default order: higher priority first, then the pod that has waited longer. */
export const byPriority: QueueOrder = (a, b) => b.pod.priority - a.pod.priority || a.queuedMs - b.queuedMs;

export interface SchedulingQueueOptions {
  readonly clock: Clock;
  readonly order?: QueueOrder;
  /** Called when a pod can be taken. */
  readonly ready: () => void;
  readonly firstBackoffMs?: number;
  readonly maxBackoffMs?: number;
}

/** An unschedulable pod is tried again after this time, whether something has changed or not. */
const maxUnschedulableMs = 300_000;
const flushEveryMs = 30_000;

/** An entry in a heap, with the values that determine its position there. */
interface Ticket {
  readonly entry: Entry;
  readonly readyAt: number;
  readonly item: QueuedPod;
  /** Decides between pods that are equal by the order. */
  readonly serial: number;
}

/**
 * The pods without a node. Pods that fit nowhere wait for a change of the cluster that concerns the filters that
 * rejected them, and at least for their back-off.
 */
export class SchedulingQueue {
  readonly #options: Required<SchedulingQueueOptions>;
  readonly #entries = new Map<string, Entry>();
  /** A heap may contain tickets of entries whose state has changed since; these tickets are skipped. */
  readonly #active: Heap<Ticket>;
  readonly #backoff = new Heap<Ticket>((a, b) => a.readyAt < b.readyAt);
  readonly #unschedulable = new Set<Entry>();
  readonly #sizes: Record<QueuePlace, number> = { active: 0, backoff: 0, unschedulable: 0, gated: 0, attempted: 0 };
  /** Changes since pods were last taken. Many changes cost one pass over the unschedulable pods. */
  readonly #changes = new Set<ClusterChange>();
  #serial = 0;
  #cancelBackoff = () => {};
  #cancelFlush = () => {};

  constructor(options: SchedulingQueueOptions) {
    this.#options = { order: byPriority, firstBackoffMs: 1_000, maxBackoffMs: 10_000, ...options };
    const { order } = this.#options;
    this.#active = new Heap((a, b) => (order(a.item, b.item) || a.serial - b.serial) < 0);
  }

  start(): void {
    const { clock } = this.#options;
    this.#cancelFlush = clock.after(flushEveryMs, () => {
      const before = clock.monotonic() - maxUnschedulableMs;
      for (const entry of this.#unschedulable) if (entry.failedAt <= before) this.#retry(entry);
      this.start();
    });
  }

  stop(): void {
    this.#cancelFlush();
    this.#cancelBackoff();
  }

  /** Number of pods in a state. */
  size(place: QueuePlace): number {
    return this.#sizes[place];
  }

  /** Adds a pod without a node, or its new state. */
  set(pod: PodInfo): void {
    const { clock } = this.#options;
    const entry = this.#entries.get(pod.uid);
    if (entry === undefined) {
      const now = clock.now();
      const added: Entry = {
        pod,
        attempts: 0,
        queuedMs: now,
        firstQueuedMs: now,
        place: 'gated',
        readyAt: 0,
        failedAt: 0,
        retryAfter: new Set(),
      };
      this.#entries.set(pod.uid, added);
      this.#sizes.gated += 1;
      if (!pod.gated) this.#move(added, 'active');
      return;
    }
    const before = entry.pod;
    entry.pod = pod;
    if (entry.place === 'gated' && !pod.gated) this.#move(entry, 'active');
    else if (entry.place === 'unschedulable' && !isSameRequest(before, pod)) this.#retry(entry);
    else if (entry.place === 'active' && before.priority !== pod.priority) this.#move(entry, 'active');
  }

  /** Removes a pod that was deleted or assigned. */
  delete(uid: string): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return;
    this.#entries.delete(uid);
    this.#sizes[entry.place] -= 1;
    this.#unschedulable.delete(entry);
    entry.place = 'attempted';
  }

  get(uid: string): QueuedPod | undefined {
    return this.#entries.get(uid);
  }

  /**
   * Takes the next pod. It stays known until it is deleted, and is tried again only after `failed` or `failedToWrite`.
   */
  take(): QueuedPod | undefined {
    this.#applyChanges();
    for (;;) {
      const ticket = this.#active.take();
      if (ticket === undefined) return undefined;
      const { entry, item } = ticket;
      if (entry.place !== 'active' || entry.queuedMs !== item.queuedMs) continue;
      this.#move(entry, 'attempted');
      entry.attempts += 1;
      return entry;
    }
  }

  /** Reports that the pod fits no node; it waits for one of the changes in `retryAfter`. */
  failed(uid: string, retryAfter: ReadonlySet<ClusterChange>): void {
    const entry = this.#attempted(uid);
    if (entry === undefined) return;
    entry.retryAfter = retryAfter;
    entry.failedAt = this.#options.clock.monotonic();
    this.#move(entry, 'unschedulable');
  }

  /** Reports that the decision could not be written; the pod is tried again after its back-off. */
  failedToWrite(uid: string): void {
    const entry = this.#attempted(uid);
    if (entry !== undefined) this.#move(entry, 'backoff');
  }

  /** Tries an unschedulable pod again after its back-off, without waiting for a change of the cluster. */
  retry(uid: string): void {
    const entry = this.#entries.get(uid);
    if (entry?.place === 'unschedulable') this.#retry(entry);
  }

  #attempted(uid: string): Entry | undefined {
    const entry = this.#entries.get(uid);
    if (entry?.place !== 'attempted') return undefined;
    const { clock, firstBackoffMs, maxBackoffMs } = this.#options;
    const backoffMs = Math.min(maxBackoffMs, firstBackoffMs * 2 ** Math.min(entry.attempts - 1, 20));
    entry.readyAt = clock.monotonic() + backoffMs;
    entry.queuedMs = clock.now();
    return entry;
  }

  /** Something changed after which unschedulable pods may fit. */
  changed(change: ClusterChange): void {
    if (this.#unschedulable.size === 0) return;
    this.#changes.add(change);
    this.#options.ready();
  }

  #applyChanges(): void {
    if (this.#changes.size === 0) return;
    const changes = [...this.#changes];
    this.#changes.clear();
    for (const entry of this.#unschedulable)
      if (changes.some((change) => entry.retryAfter.has(change))) this.#retry(entry);
  }

  #retry(entry: Entry): void {
    this.#move(entry, entry.readyAt > this.#options.clock.monotonic() ? 'backoff' : 'active');
  }

  #move(entry: Entry, place: QueuePlace): void {
    this.#sizes[entry.place] -= 1;
    this.#sizes[place] += 1;
    entry.place = place;
    if (place === 'unschedulable') this.#unschedulable.add(entry);
    else this.#unschedulable.delete(entry);
    const { pod, attempts, queuedMs, firstQueuedMs, readyAt } = entry;
    this.#serial += 1;
    const ticket = { entry, readyAt, item: { pod, attempts, queuedMs, firstQueuedMs }, serial: this.#serial };
    if (place === 'active') {
      this.#active.add(ticket);
      this.#options.ready();
    } else if (place === 'backoff') {
      this.#backoff.add(ticket);
      if (this.#backoff.first === ticket) this.#waitForBackoff();
    }
  }

  #waitForBackoff(): void {
    this.#cancelBackoff();
    const { first } = this.#backoff;
    if (first === undefined) return;
    const { clock } = this.#options;
    this.#cancelBackoff = clock.after(Math.max(0, first.readyAt - clock.monotonic()), () => {
      const now = clock.monotonic();
      for (let next = this.#backoff.first; next !== undefined && next.readyAt <= now; next = this.#backoff.first) {
        this.#backoff.take();
        if (next.entry.place === 'backoff' && next.entry.readyAt === next.readyAt) this.#move(next.entry, 'active');
      }
      this.#waitForBackoff();
    });
  }
}

/** True when an update of a pod cannot make it schedulable. */
function isSameRequest(a: PodInfo, b: PodInfo): boolean {
  return (
    a.requirements === b.requirements &&
    a.priority === b.priority &&
    isSameLabels(a.labels, b.labels) &&
    (a.nominatedNodeName === b.nominatedNodeName || b.nominatedNodeName !== '')
  );
}
