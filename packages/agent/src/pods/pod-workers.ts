import type { Clock, Logger } from '@keelson/core/runtime';
import type { Pod, PodStatus } from '@keelson/kinds';
import { fullNameOf, isStaticPod, uidOf } from '../base/pod/pod-spec.ts';
import type { SyncResult } from './pod-syncer.ts';
import type { PodVerdict, WaitingReason } from './status/pod-status.ts';

/**
 * The agent's record of a pod between two syncs. It is lost when the agent ends; durable facts are in the runtime or in
 * the API.
 */
export interface PodRecord {
  /** Why containers are waiting, by name. */
  readonly waiting: Map<string, WaitingReason>;
  /** The last reported status. */
  status: PodStatus;
  verdict: PodVerdict | undefined;
}

export function newPodRecord(status: PodStatus): PodRecord {
  return { waiting: new Map(), status, verdict: undefined };
}

/** The work that a worker performs on its pod, injected so that the order of steps can be tested separately. */
export interface PodWork {
  sync(pod: Pod, record: PodRecord, signal: AbortSignal): Promise<SyncResult>;
  /** Ends all containers and sandboxes; resolves when none runs. `pod` is undefined when no source has it. */
  end(
    uid: string,
    pod: Pod | undefined,
    record: PodRecord,
    graceSeconds: number | undefined,
    signal: AbortSignal,
  ): Promise<void>;
  /** Removes all resources of an ended pod. */
  cleanUp(uid: string, signal: AbortSignal): Promise<void>;
  /** All resources are removed, so that the object may be deleted from the API. */
  ended(pod: Pod): void;
}

/**
 * ```
 * active --final phase--> ending --> resting --deleted/removed/evicted--> clean --removed--> gone
 *    \__deleted/removed/evicted__^
 * ```
 */
export type WorkerStage = 'active' | 'ending' | 'resting' | 'clean' | 'gone';

export interface PodWorkerOptions {
  readonly uid: string;
  readonly record: PodRecord;
  readonly work: PodWork;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly syncMs: number;
  /** 0..1 */
  readonly random: () => number;
  /** False while the pod has to wait for another pod of the same name. */
  readonly mayBegin: () => boolean;
  readonly onGone: () => void;
}

const failureRetryMs = 10_000;

/**
 * Reconciles one pod, one step at a time. Of several updates only the latest is used, except that a request to end the
 * pod is never reverted.
 */
export class PodWorker {
  readonly #options: PodWorkerOptions;
  #pod: Pod | undefined;
  #stage: WorkerStage = 'active';
  /** The end of the pod was requested, with its grace period if one was specified. */
  #kill: { graceSeconds: number | undefined } | undefined;
  /** The pod was deleted or removed, so that its resources are removed after its end. */
  #unwanted = false;
  #removed = false;
  /** The pod was evicted: its resources are removed; the object remains, with its last status. */
  #evicted = false;
  /** The deletion of the object from the API was permitted. */
  #released = false;
  readonly #onClean = new Set<() => void>();
  #dirty = false;
  #stopped = false;
  #running: Promise<void> | undefined;
  #abort = new AbortController();
  #cancelTimer: () => void = () => {};

  constructor(options: PodWorkerOptions) {
    this.#options = options;
  }

  get uid(): string {
    return this.#options.uid;
  }

  get stage(): WorkerStage {
    return this.#stage;
  }

  /** The latest specification; undefined for a pod that only the runtime has. */
  get pod(): Pod | undefined {
    return this.#pod;
  }

  get record(): PodRecord {
    return this.#options.record;
  }

  /** The pod is being ended. */
  get leaving(): boolean {
    return this.#kill !== undefined;
  }

  /** Sets the latest specification; one with a `deletionTimestamp` ends the pod. */
  update(pod: Pod): void {
    this.#pod = pod;
    if (pod.metadata?.deletionTimestamp !== undefined) {
      this.#unwanted = true;
      this.#end(pod.metadata.deletionGracePeriodSeconds);
    }
    this.requestSync();
  }

  /** The source no longer has the pod. */
  remove(): void {
    this.#removed = true;
    this.#unwanted = true;
    this.#end(undefined);
    this.requestSync();
  }

  /**
   * Ends the pod permanently, because the node is short of a resource. Afterwards all its resources are removed and its
   * status is `verdict`. Resolves when this is done, or when the agent stops.
   *
   * @param graceSeconds overrides the pod's own grace period
   */
  evict(verdict: PodVerdict, graceSeconds: number | undefined): Promise<void> {
    this.record.verdict = verdict;
    this.#evicted = true;
    this.#end(graceSeconds);
    const clean = new Promise<void>((resolve) => this.#onClean.add(resolve));
    this.requestSync();
    return clean;
  }

  /** Requests another sync. */
  requestSync(): void {
    if (this.#stopped || this.#stage === 'gone') return;
    this.#dirty = true;
    this.#running ??= this.#run();
  }

  /** Stops reconciling the pod and leaves it unchanged. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer();
    this.#abort.abort();
    await this.#running;
    this.#notifyClean();
  }

  #end(graceSeconds: number | undefined): void {
    const before = this.#kill;
    const shorter =
      graceSeconds !== undefined && (before?.graceSeconds === undefined || graceSeconds < before.graceSeconds);
    if (before !== undefined && !shorter) return;
    this.#kill = { graceSeconds: graceSeconds ?? before?.graceSeconds };
    // Abort the running step: a start, or an end with a longer grace period.
    this.#abort.abort();
    this.#abort = new AbortController();
  }

  async #run(): Promise<void> {
    // The caller continues first.
    await Promise.resolve();
    while (this.#dirty && !this.#stopped) {
      this.#dirty = false;
      this.#cancelTimer();
      const { signal } = this.#abort;
      let againMs: number | undefined;
      try {
        againMs = await this.#step(signal);
      } catch (err) {
        if (this.#stopped) break;
        if (signal.aborted) this.#dirty = true;
        else {
          this.#options.logger.warn('syncing a pod failed', {
            component: 'pod-worker',
            ...this.#names(),
            err,
          });
          againMs = failureRetryMs * (1 + this.#options.random() / 2);
        }
      }
      if (!this.#dirty && !this.#stopped && againMs !== undefined) {
        this.#cancelTimer = this.#options.clock.after(againMs, () => this.requestSync());
      }
    }
    this.#running = undefined;
  }

  /** Performs one step; returns the delay until the next one, undefined = until the next change. */
  async #step(signal: AbortSignal): Promise<number | undefined> {
    if (this.#kill === undefined && this.#stage === 'active') return this.#sync(signal);
    if (this.#stage === 'active' || this.#stage === 'ending') await this.#finish(signal);
    if (this.#stage === 'resting' && (this.#unwanted || this.#evicted)) await this.#cleanUp(signal);
    if (this.#stage === 'clean' && this.#unwanted) this.#release();
    if (this.#stage === 'clean' && this.#removed) this.#gone();
    return undefined;
  }

  async #sync(signal: AbortSignal): Promise<number | undefined> {
    const { work, record, syncMs, random, mayBegin } = this.#options;
    const pod = this.#pod;
    if (pod === undefined || !mayBegin()) return undefined;
    const { final, againAfterMs } = await work.sync(pod, record, signal);
    if (final) {
      this.#kill ??= { graceSeconds: undefined };
      this.#dirty = true;
      return undefined;
    }
    const regular = syncMs * (1 + random() / 2);
    return againAfterMs === undefined ? regular : Math.min(regular, againAfterMs);
  }

  async #finish(signal: AbortSignal): Promise<void> {
    const { work, record, uid } = this.#options;
    this.#stage = 'ending';
    await work.end(uid, this.#pod, record, this.#kill?.graceSeconds, signal);
    this.#stage = 'resting';
  }

  async #cleanUp(signal: AbortSignal): Promise<void> {
    const { work, uid } = this.#options;
    await work.cleanUp(uid, signal);
    this.#stage = 'clean';
    this.#notifyClean();
  }

  #release(): void {
    if (this.#released) return;
    this.#released = true;
    if (this.#pod !== undefined && !this.#removed) this.#options.work.ended(this.#pod);
  }

  #notifyClean(): void {
    for (const notify of this.#onClean) notify();
    this.#onClean.clear();
  }

  #gone(): void {
    this.#stage = 'gone';
    this.#options.onGone();
  }

  #names(): { readonly uid: string; readonly pod: string | undefined } {
    return { uid: this.#options.uid, pod: this.#pod && fullNameOf(this.#pod) };
  }
}

export interface PodWorkersOptions {
  readonly work: PodWork;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly syncMs: number;
  readonly random: () => number;
  /** Makes the first record of a new pod. */
  readonly recordOf: (pod: Pod, workers: PodWorkers) => PodRecord;
  /** Called with the number of workers after one was added or removed. */
  readonly onCount: (count: number) => void;
  readonly onGone: (uid: string) => void;
}

/** One worker per pod, by its UID. */
export class PodWorkers {
  readonly #options: PodWorkersOptions;
  readonly #workers = new Map<string, PodWorker>();
  readonly #byName = new Map<string, Set<PodWorker>>();

  constructor(options: PodWorkersOptions) {
    this.#options = options;
  }

  get(uid: string): PodWorker | undefined {
    return this.#workers.get(uid);
  }

  all(): Iterable<PodWorker> {
    return this.#workers.values();
  }

  uids(): Iterable<string> {
    return this.#workers.keys();
  }

  get size(): number {
    return this.#workers.size;
  }

  /** The workers of all pods of this name; an edited manifest and a recreated pod have the name of the previous one. */
  named(fullName: string): Iterable<PodWorker> {
    return this.#byName.get(fullName) ?? [];
  }

  update(pod: Pod): void {
    const uid = uidOf(pod);
    let worker = this.#workers.get(uid);
    if (worker === undefined) {
      worker = this.#create(uid, this.#options.recordOf(pod, this), () => !this.#isBlocked(pod));
    }
    this.#name(worker, pod);
    worker.update(pod);
  }

  remove(uid: string): void {
    this.#workers.get(uid)?.remove();
  }

  /** Ends a pod that is in the runtime and that no source has. */
  removeOrphan(uid: string): void {
    if (!this.#workers.has(uid)) this.#create(uid, newPodRecord({}), () => true);
    this.remove(uid);
  }

  requestSync(uid: string): void {
    this.#workers.get(uid)?.requestSync();
  }

  pokeAll(): void {
    for (const worker of this.#workers.values()) worker.requestSync();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop()));
  }

  #create(uid: string, record: PodRecord, mayBegin: () => boolean): PodWorker {
    const { work, clock, logger, syncMs, random } = this.#options;
    const onGone = () => this.#gone(uid);
    const worker = new PodWorker({ uid, record, work, clock, logger, syncMs, random, mayBegin, onGone });
    this.#workers.set(uid, worker);
    this.#options.onCount(this.size);
    return worker;
  }

  #name(worker: PodWorker, pod: Pod): void {
    const name = fullNameOf(pod);
    const known = this.#byName.get(name);
    if (known === undefined) this.#byName.set(name, new Set([worker]));
    else known.add(worker);
  }

  #gone(uid: string): void {
    const worker = this.#workers.get(uid);
    this.#workers.delete(uid);
    this.#options.onCount(this.size);
    this.#options.onGone(uid);
    if (worker?.pod === undefined) return;
    const name = fullNameOf(worker.pod);
    const others = this.#byName.get(name);
    others?.delete(worker);
    if (others?.size === 0) this.#byName.delete(name);
    for (const other of others ?? []) other.requestSync();
  }

  /**
   * An edited manifest is another pod of the same name: it waits until the previous one has been removed, because it
   * uses the same ports and files.
   */
  #isBlocked(pod: Pod): boolean {
    if (!isStaticPod(pod)) return false;
    for (const other of this.named(fullNameOf(pod))) {
      if (other.leaving && other.stage !== 'clean' && other.uid !== uidOf(pod)) return true;
    }
    return false;
  }
}
