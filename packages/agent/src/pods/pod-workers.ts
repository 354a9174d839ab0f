import type { Clock, Logger } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import { isStaticPod } from '../base/pod/pod-annotations.ts';
import { fullNameOf, uidOf } from '../base/pod/pod-spec.ts';
import { newPodRecord, type PodRecord } from './pod-record.ts';
import { type PodWork, PodWorker } from './pod-worker.ts';

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
