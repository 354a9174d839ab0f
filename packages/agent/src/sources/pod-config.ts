import { equalJson, isJsonObject } from '@keelson/core/internal';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import type {
  PodChange,
  PodChangesSink,
  PodConfigListener,
  PodConfigReader,
  PodSink,
  PodSourceName,
} from '../base/contracts/pod-source.ts';

export interface PodConfigOptions {
  /** Every source that will deliver. */
  readonly sources: readonly PodSourceName[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** When the agent first observed a pod. */
const seenAnnotation = 'kubernetes.io/config.seen';

/**
 * Merges the pods of all sources: compares each set with the previous one of the same source and notifies listeners of
 * the changes. Sources are independent; two sources with the same pod under different UIDs have two pods.
 */
export class PodConfig implements PodConfigReader {
  readonly #options: PodConfigOptions;
  readonly #sets: Map<PodSourceName, Map<string, Pod>>;
  readonly #seen = new Set<PodSourceName>();
  readonly #listeners = new Set<PodConfigListener>();

  constructor(options: PodConfigOptions) {
    this.#options = options;
    this.#sets = new Map(options.sources.map((source) => [source, new Map()]));
  }

  /** The function to which a source delivers complete sets. */
  sink(source: PodSourceName): PodSink {
    return (pods) => {
      const first = !this.#seen.has(source);
      this.#seen.add(source);
      this.#take(source, pods, first);
    };
  }

  /** The function to which a source delivers changes after it has delivered a complete set. */
  changesSink(source: PodSourceName): PodChangesSink {
    return (pods, gone) => this.#takeChanges(source, pods, gone);
  }

  /**
   * Sets the pods that a source had before the agent was restarted, until the source delivers. The source does not
   * count as read.
   */
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
    const before = this.#setOf(source);
    const now = new Map<string, Pod>();
    const changes = this.#compare(source, pods, before, now);
    const removed: PodChange[] = [];
    for (const [uid, pod] of before) if (!now.has(uid)) removed.push({ op: 'remove', pod, source });
    this.#sets.set(source, now);
    this.#notify(source, removed, changes, always);
  }

  #takeChanges(source: PodSourceName, pods: readonly Pod[], gone: readonly string[]): void {
    const set = this.#setOf(source);
    const removed: PodChange[] = [];
    for (const uid of gone) {
      const pod = set.get(uid);
      if (pod !== undefined) removed.push({ op: 'remove', pod, source });
      set.delete(uid);
    }
    this.#notify(source, removed, this.#compare(source, pods, set, set), false);
  }

  #setOf(source: PodSourceName): Map<string, Pod> {
    const set = this.#sets.get(source);
    if (set === undefined) throw new Error(`the source ${source} is not configured`);
    return set;
  }

  /** Adds pods to `now`, and returns their changes since `before`. */
  #compare(
    source: PodSourceName,
    pods: readonly Pod[],
    before: ReadonlyMap<string, Pod>,
    now: Map<string, Pod>,
  ): PodChange[] {
    const changes: PodChange[] = [];
    for (const pod of pods) {
      const uid = pod.metadata?.uid ?? '';
      const old = before.get(uid);
      const op = changeOf(old, pod);
      if (old !== pod) this.#stamp(pod, old);
      // The worker keeps its pod object: one specification in memory is enough.
      if (old !== undefined && op !== 'update') pod.spec = old.spec;
      now.set(uid, pod);
      if (op !== undefined) changes.push({ op, pod, source });
    }
    return changes;
  }

  #stamp(pod: Pod, old: Pod | undefined): void {
    const meta = pod.metadata ?? {};
    const seen = old?.metadata?.annotations?.[seenAnnotation] ?? new Date(this.#options.clock.now()).toISOString();
    pod.metadata = { ...meta, annotations: { ...meta.annotations, [seenAnnotation]: seen } };
  }

  #notify(source: PodSourceName, removed: readonly PodChange[], changed: readonly PodChange[], always: boolean): void {
    if (!always && removed.length + changed.length === 0) return;
    // Removals first, so that ports and names are free for a pod that replaces another.
    const changes = [...removed, ...changed];
    for (const listener of this.#listeners) {
      try {
        listener(source, changes);
      } catch (err) {
        this.#options.logger.error('a listener of pod changes failed', { source, err });
      }
    }
  }
}

/** Metadata that the server maintains and that does not change the desired state. */
const serverFields: ReadonlySet<string> = new Set(['resourceVersion', 'managedFields', 'generation', 'selfLink']);
/** Annotations that the agent adds. */
const own: ReadonlySet<string> = new Set(['kubernetes.io/config.seen']);
const inMetadata: ReadonlySet<string> = new Set([...serverFields, 'annotations']);

function sameBut(skipped: ReadonlySet<string>, a: unknown, b: unknown): boolean {
  if (!isJsonObject(a) || !isJsonObject(b)) return equalJson(a, b);
  for (const key of Object.keys(a)) if (!skipped.has(key) && !equalJson(a[key], b[key])) return false;
  for (const key of Object.keys(b)) if (b[key] !== undefined && a[key] === undefined && !skipped.has(key)) return false;
  return true;
}

/** True when two states of a pod describe the same desired state. */
export function sameIntention(a: Pod, b: Pod): boolean {
  const [before, now] = [a.metadata ?? {}, b.metadata ?? {}];
  return (
    equalJson(a.spec, b.spec) &&
    sameBut(inMetadata, before, now) &&
    sameBut(own, before.annotations ?? {}, now.annotations ?? {})
  );
}

/** The operation for a new state of a pod; undefined when nothing changed. */
export function changeOf(old: Pod | undefined, pod: Pod): PodChange['op'] | undefined {
  if (old === undefined) return 'add';
  if (old === pod) return undefined;
  if (!sameIntention(old, pod)) return 'update';
  return equalJson(old.status, pod.status) ? undefined : 'reconcile';
}
