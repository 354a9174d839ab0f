import type { Clock, Logger } from '@keelson/core';
import type { Pod } from '@keelson/kinds';
import { isStaticPod } from './pod-annotations.ts';
import { newMemory, type PodMemory } from './pod-memory.ts';
import { fullNameOf, uidOf } from './pod-spec-words.ts';
import { type PodWork, PodWorker } from './pod-worker.ts';

export interface PodWorkersOptions {
  readonly work: PodWork;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly syncMs: number;
  readonly random: () => number;
  /** A new pod begins with this memory. */
  readonly remember: (pod: Pod) => PodMemory;
  readonly onGone: (uid: string) => void;
}

/** One worker per pod, by its UID. */
export class PodWorkers {
  readonly #options: PodWorkersOptions;
  readonly #workers = new Map<string, PodWorker>();

  constructor(options: PodWorkersOptions) {
    this.#options = options;
  }

  get(uid: string): PodWorker | undefined {
    return this.#workers.get(uid);
  }

  all(): PodWorker[] {
    return [...this.#workers.values()];
  }

  update(pod: Pod): void {
    const uid = uidOf(pod);
    let worker = this.#workers.get(uid);
    if (worker === undefined) {
      worker = this.#create(uid, this.#options.remember(pod), () => !this.#isBlocked(pod));
    }
    worker.update(pod);
  }

  remove(uid: string): void {
    this.#workers.get(uid)?.remove();
  }

  /** Ends a pod that is in the runtime and that nobody wants. */
  removeOrphan(uid: string): void {
    if (!this.#workers.has(uid)) this.#create(uid, newMemory({}), () => true);
    this.remove(uid);
  }

  poke(uid: string): void {
    this.#workers.get(uid)?.poke();
  }

  pokeAll(): void {
    for (const worker of this.#workers.values()) worker.poke();
  }

  async stop(): Promise<void> {
    await Promise.all(this.all().map((worker) => worker.stop()));
  }

  #create(uid: string, memory: PodMemory, mayBegin: () => boolean): PodWorker {
    const { work, clock, logger, syncMs, random } = this.#options;
    const onGone = () => this.#gone(uid);
    const worker = new PodWorker({ uid, memory, work, clock, logger, syncMs, random, mayBegin, onGone });
    this.#workers.set(uid, worker);
    return worker;
  }

  #gone(uid: string): void {
    const name = nameOf(this.#workers.get(uid));
    this.#workers.delete(uid);
    this.#options.onGone(uid);
    for (const worker of this.#workers.values()) if (nameOf(worker) === name) worker.poke();
  }

  /** A manifest that was edited is another pod of the same name: it waits until the old one has gone, whose ports and files it uses. */
  #isBlocked(pod: Pod): boolean {
    if (!isStaticPod(pod)) return false;
    return this.all().some(
      (other) =>
        other.leaving &&
        other.stage !== 'clean' &&
        nameOf(other) === fullNameOf(pod) &&
        other.pod &&
        uidOf(other.pod) !== uidOf(pod),
    );
  }
}

function nameOf(worker: PodWorker | undefined): string | undefined {
  return worker?.pod && fullNameOf(worker.pod);
}
