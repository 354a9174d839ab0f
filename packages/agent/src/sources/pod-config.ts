import type { Clock, Logger } from '@keelson/core';
import type { Pod } from '@keelson/kinds';
import type { PodChange, PodConfigListener, PodConfigReader, PodSink, PodSourceName } from '../contracts/pod-source.ts';
import { changeOf } from './pod-difference.ts';

export interface PodConfigOptions {
  /** Every source that will deliver. */
  readonly sources: readonly PodSourceName[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** When the agent first heard of a pod. */
const seenAnnotation = 'kubernetes.io/config.seen';

/**
 * Joins what the sources want: compares each set with the one before of the same source and tells what became of every pod. Sources do not
 * disturb each other; a pod that two of them want under different UIDs is two pods.
 */
export class PodConfig implements PodConfigReader {
  readonly #options: PodConfigOptions;
  readonly #sets: Map<PodSourceName, ReadonlyMap<string, Pod>>;
  readonly #seen = new Set<PodSourceName>();
  readonly #listeners = new Set<PodConfigListener>();

  constructor(options: PodConfigOptions) {
    this.#options = options;
    this.#sets = new Map(options.sources.map((source) => [source, new Map()]));
  }

  /** Where a source delivers. */
  sink(source: PodSourceName): PodSink {
    return (pods) => {
      const first = !this.#seen.has(source);
      this.#seen.add(source);
      this.#take(source, pods, first);
    };
  }

  /** Pods that a source had before the agent was restarted, until the source speaks for itself; it does not count as seen by that. */
  restore(source: PodSourceName, pods: readonly Pod[]): void {
    if (!this.#seen.has(source)) this.#take(source, pods, false);
  }

  subscribe(listener: PodConfigListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  pods(): readonly Pod[] {
    return [...this.#sets.values()].flatMap((set) => [...set.values()]);
  }

  seenAllSources(): boolean {
    return this.#options.sources.every((source) => this.#seen.has(source));
  }

  #take(source: PodSourceName, pods: readonly Pod[], always: boolean): void {
    const before = this.#sets.get(source);
    if (before === undefined) throw new Error(`the source ${source} was not announced`);
    const now = new Map<string, Pod>();
    const changes: PodChange[] = [];
    for (const pod of pods) {
      const uid = pod.metadata?.uid ?? '';
      const old = before.get(uid);
      const op = changeOf(old, pod);
      if (old !== pod) this.#stamp(pod, old);
      now.set(uid, pod);
      if (op !== undefined) changes.push({ op, pod, source });
    }
    // Ends first: a pod that takes another's place finds its ports and names free.
    const removed = [...before].filter(([uid]) => !now.has(uid)).map(([, pod]): PodChange => ({ op: 'remove', pod, source }));
    this.#sets.set(source, now);
    if (always || changes.length + removed.length > 0) this.#tell(source, [...removed, ...changes]);
  }

  #stamp(pod: Pod, old: Pod | undefined): void {
    const meta = pod.metadata ?? {};
    const seen = old?.metadata?.annotations?.[seenAnnotation] ?? new Date(this.#options.clock.now()).toISOString();
    pod.metadata = { ...meta, annotations: { ...meta.annotations, [seenAnnotation]: seen } };
  }

  #tell(source: PodSourceName, changes: readonly PodChange[]): void {
    for (const listener of this.#listeners) {
      try {
        listener(source, changes);
      } catch (err) {
        this.#options.logger.error('a listener of pod changes failed', { source, err });
      }
    }
  }
}
