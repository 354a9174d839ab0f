import { setMaxListeners } from 'node:events';
import type {
  CallOptions,
  Container,
  ContainerRuntime,
  ContainerStatus,
  PodSandboxStatus,
  RuntimeEvent,
  SandboxId,
} from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core/runtime';
import {
  byPod,
  emptyState,
  isDefined,
  isEnd,
  isReflected,
  outlineOf,
  type PodListing,
  type PodRuntimeState,
  podIdentityOf,
  RuntimeLabel,
  sandboxIdsOf,
  undefinedIfMissing,
} from './runtime-objects.ts';

/** Maps sandboxes to pods. Inspections are numbered; a higher number started later. */
export class SandboxOwners {
  readonly #pods = new Map<string, Map<SandboxId, number>>();
  readonly #owners = new Map<SandboxId, string>();

  ownerOf(id: SandboxId): string | undefined {
    return this.#owners.get(id);
  }

  sandboxesOf(uid: string): SandboxId[] {
    return [...(this.#pods.get(uid)?.keys() ?? [])];
  }

  /** Adds a sandbox that was discovered during or after this inspection. */
  add(uid: string, id: SandboxId, inspection: number): void {
    const ids = this.#pods.get(uid) ?? new Map<SandboxId, number>();
    ids.set(id, inspection);
    this.#pods.set(uid, ids);
    this.#owners.set(id, uid);
  }

  /**
   * Replaces the sandboxes of a pod by those of an inspection. Sandboxes that were added after the inspection started
   * are retained.
   */
  replace(uid: string, ids: Iterable<SandboxId>, inspection: number): void {
    const shown = new Set(ids);
    for (const [id, added] of this.#pods.get(uid) ?? []) {
      if (shown.has(id) || added >= inspection) continue;
      this.#pods.get(uid)?.delete(id);
      this.#owners.delete(id);
    }
    for (const id of shown) this.add(uid, id, inspection);
    if (this.#pods.get(uid)?.size === 0) this.#pods.delete(uid);
  }
}

/**
 * Processes all items, at most `atOnce` at the same time. Rejects with the first error after all started items have
 * been processed.
 */
export async function inParallel<T>(
  items: Iterable<T>,
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = items[Symbol.iterator]();
  const worker = async () => {
    for (let next = left.next(); !next.done; next = left.next()) await work(next.value);
  };
  const ends = await Promise.allSettled(Array.from({ length: atOnce }, worker));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}

interface CachedPod {
  /** Number of the last inspection of the pod. */
  inspection: number;
  readonly outline: string;
  readonly state: PodRuntimeState;
}

export interface RuntimePodsOptions {
  readonly runtime: ContainerRuntime;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly callTimeoutMs: number;
  /** Called when the state of a pod has changed, and when the runtime no longer has the pod. */
  readonly onChange: (uid: string) => void;
}

/**
 * Number of pods whose details are read at the same time in a relist, so that a pod whose calls hang does not block the
 * others.
 */
const atOnce = 16;

/**
 * A cache of the pods that the runtime has. The details of a pod are read only when its listing has changed. The cost
 * of inspecting one pod does not depend on the number of pods.
 */
export class RuntimePods {
  readonly #options: RuntimePodsOptions;
  readonly #pods = new Map<string, CachedPod>();
  readonly #owners = new SandboxOwners();
  /** The number of running actions of the agent, by pod. */
  readonly #acting = new Map<string, number>();
  #inspections = 0;
  #lastMs: number | undefined;

  constructor(options: RuntimePodsOptions) {
    this.#options = options;
  }

  /** True after the first relist. Before it, the absence of a pod proves nothing. */
  get complete(): boolean {
    return this.#lastMs !== undefined;
  }

  /** Time of the last relist, monotonic milliseconds. */
  get lastMs(): number | undefined {
    return this.#lastMs;
  }

  get(uid: string): PodRuntimeState | undefined {
    return this.#pods.get(uid)?.state;
  }

  uids(): Iterable<string> {
    return this.#pods.keys();
  }

  all(): PodRuntimeState[] {
    return [...this.#pods.values()].map(({ state }) => state);
  }

  /** Reads all pods of the runtime. @throws when the runtime does not answer */
  async relist(signal: AbortSignal): Promise<void> {
    const { runtime, clock } = this.#options;
    const inspection = this.#next();
    const call = this.#call(signal);
    const [sandboxes, containers] = await Promise.all([
      runtime.listPodSandboxes(undefined, call),
      runtime.listContainers(undefined, call),
    ]);
    const listings = byPod(sandboxes, containers);
    for (const uid of this.#pods.keys()) if (!listings.has(uid)) this.#remove(uid, inspection);
    // Most pods have not changed and need no further call.
    const changed = [...listings].filter(([uid, one]) => !this.#isCurrent(uid, outlineOf(one), inspection));
    await inParallel(changed, atOnce, ([uid, one]) => this.#update(uid, one, inspection, signal));
    this.#lastMs = clock.monotonic();
  }

  /** Lists the objects of one pod by label and reads their details. */
  async refresh(uid: string, signal: AbortSignal): Promise<PodRuntimeState | undefined> {
    const { runtime } = this.#options;
    const inspection = this.#next();
    const call = this.#call(signal);
    const filter = { labels: { [RuntimeLabel.podUid]: uid } };
    const [sandboxes, containers] = await Promise.all([
      runtime.listPodSandboxes(filter, call),
      runtime.listContainers(filter, call),
    ]);
    return this.#apply(uid, { sandboxes, containers }, inspection, signal);
  }

  /** Adds a new sandbox of a pod, so that `inspect` includes it. */
  addSandbox(uid: string, id: SandboxId): void {
    this.#owners.add(uid, id, this.#inspections);
  }

  /** Reads the cached sandboxes of a pod and their containers, without a search by label. */
  async inspect(uid: string, signal: AbortSignal): Promise<PodRuntimeState | undefined> {
    const { runtime } = this.#options;
    const inspection = this.#next();
    const call = this.#call(signal);
    const found = await Promise.all(
      this.#owners.sandboxesOf(uid).map(async (sandboxId) => {
        const [sandbox, containers] = await Promise.all([
          undefinedIfMissing(runtime.podSandboxStatus(sandboxId, call)),
          runtime.listContainers({ sandboxId }, call),
        ]);
        return { sandbox, containers };
      }),
    );
    found.sort((a, b) => (b.sandbox?.metadata.attempt ?? -1) - (a.sandbox?.metadata.attempt ?? -1));
    const sandboxes = found.map(({ sandbox }) => sandbox).filter(isDefined);
    const containers = found.flatMap((one) => one.containers);
    return this.#apply(uid, { sandboxes, containers }, inspection, signal, sandboxes);
  }

  /** Inspects the pod of a sandbox. A sandbox that no agent created is ignored. */
  async inspectSandbox(id: SandboxId, signal: AbortSignal): Promise<void> {
    let uid = this.#owners.ownerOf(id);
    if (uid === undefined) {
      const [sandbox] = await this.#options.runtime.listPodSandboxes({ id }, this.#call(signal));
      uid = sandbox && podIdentityOf(sandbox.labels)?.uid;
      if (uid === undefined) return;
      this.addSandbox(uid, id);
    }
    await this.inspect(uid, signal);
  }

  /**
   * Runs an action that changes a pod. The caller inspects the pod afterwards, so events about the pod need no
   * inspection meanwhile.
   */
  async whileActing<T>(uid: string, act: () => Promise<T>): Promise<T> {
    this.#acting.set(uid, (this.#acting.get(uid) ?? 0) + 1);
    try {
      return await act();
    } finally {
      const others = (this.#acting.get(uid) ?? 1) - 1;
      if (others > 0) this.#acting.set(uid, others);
      else this.#acting.delete(uid);
    }
  }

  /**
   * True when an event needs no inspection: the cache contains its change, or the part of the agent that causes it will
   * inspect the pod.
   */
  reflects(event: RuntimeEvent): boolean {
    if (event.type === 'resync') return false;
    const uid = this.#owners.ownerOf(event.sandboxId);
    if (uid !== undefined && this.#acting.has(uid) && !isEnd(event)) return true;
    return isReflected(event, uid === undefined ? undefined : this.get(uid));
  }

  #call(signal: AbortSignal): CallOptions {
    // Every call of an inspection adds a listener; the warning about a leak would be wrong.
    setMaxListeners(0, signal);
    return { signal, timeoutMs: this.#options.callTimeoutMs };
  }

  #next(): number {
    this.#inspections += 1;
    return this.#inspections;
  }

  async #apply(
    uid: string,
    listing: PodListing,
    inspection: number,
    signal: AbortSignal,
    boxes?: readonly PodSandboxStatus[],
  ): Promise<PodRuntimeState | undefined> {
    if (listing.sandboxes.length + listing.containers.length === 0) this.#remove(uid, inspection);
    else await this.#update(uid, listing, inspection, signal, boxes);
    return this.get(uid);
  }

  #remove(uid: string, inspection: number): void {
    const cached = this.#pods.get(uid);
    if (cached !== undefined && cached.inspection > inspection) return;
    this.#owners.replace(uid, [], inspection);
    if (this.#pods.delete(uid)) this.#options.onChange(uid);
  }

  /** True when the cache already contains this listing, or one of a later inspection. */
  #isCurrent(uid: string, outline: string, inspection: number): boolean {
    const cached = this.#pods.get(uid);
    if (cached === undefined) return false;
    if (cached.inspection > inspection) return true;
    if (cached.outline !== outline) return false;
    cached.inspection = inspection;
    return true;
  }

  /** Stores the details of a listing, unless a later inspection has stored its own. */
  async #update(
    uid: string,
    listing: PodListing,
    inspection: number,
    signal: AbortSignal,
    boxes?: readonly PodSandboxStatus[],
  ): Promise<void> {
    const outline = outlineOf(listing);
    if (this.#isCurrent(uid, outline, inspection)) return;
    const state = await this.#details(listing, this.get(uid), signal, boxes);
    if (state === undefined) return;
    const now = this.#pods.get(uid);
    if (now !== undefined && now.inspection > inspection) return;
    this.#pods.set(uid, { inspection, outline, state });
    this.#owners.replace(uid, sandboxIdsOf(listing), inspection);
    this.#options.onChange(uid);
  }

  async #details(
    listing: PodListing,
    before: PodRuntimeState | undefined,
    signal: AbortSignal,
    cached?: readonly PodSandboxStatus[],
  ): Promise<PodRuntimeState | undefined> {
    const { runtime, logger } = this.#options;
    const call = this.#call(signal);
    const identity = podIdentityOf((listing.sandboxes[0] ?? listing.containers[0])?.labels ?? {});
    if (identity === undefined) return undefined;
    // The status of an exited container does not change any more.
    const ended = new Map(
      before?.containers.filter(({ state }) => state === 'exited').map((status) => [status.id, status]),
    );
    const statusOf = async ({ id, state }: Container): Promise<ContainerStatus | undefined> =>
      (state === 'exited' ? ended.get(id) : undefined) ?? undefinedIfMissing(runtime.containerStatus(id, call));
    try {
      const [boxes, statuses] = await Promise.all([
        cached ??
          Promise.all(listing.sandboxes.map(({ id }) => undefinedIfMissing(runtime.podSandboxStatus(id, call)))),
        Promise.all(listing.containers.map(statusOf)),
      ]);
      return { ...emptyState(identity), sandboxes: boxes.filter(isDefined), containers: statuses.filter(isDefined) };
    } catch (err) {
      // A pod whose details cannot be read does not affect other pods; the next inspection retries.
      if (!signal.aborted)
        logger.warn('details of a pod could not be read', { component: 'runtime-pods', uid: identity.uid, err });
      return undefined;
    }
  }
}
