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
import type { Clock, Logger } from '@keelson/core';
import { emptyState, type PodRuntimeState } from './pod-runtime-state.ts';
import { podIdentityOf, RuntimeLabel } from './runtime-labels.ts';
import { byPod, isEnd, isShown, isThere, outlineOf, type Seen, sandboxIdsOf, unlessGone } from './runtime-objects.ts';

/** Which sandbox belongs to which pod. Times are numbers of looks. */
export class SandboxOwners {
  readonly #pods = new Map<string, Map<SandboxId, number>>();
  readonly #owners = new Map<SandboxId, string>();

  ownerOf(id: SandboxId): string | undefined {
    return this.#owners.get(id);
  }

  sandboxesOf(uid: string): SandboxId[] {
    return [...(this.#pods.get(uid)?.keys() ?? [])];
  }

  /** The sandbox was heard of when `look` was the latest look. */
  note(uid: string, id: SandboxId, look: number): void {
    const ids = this.#pods.get(uid) ?? new Map<SandboxId, number>();
    ids.set(id, look);
    this.#pods.set(uid, ids);
    this.#owners.set(id, uid);
  }

  /** A look showed these sandboxes of a pod. Those that were heard of after it began may exist all the same. */
  showed(uid: string, ids: Iterable<SandboxId>, look: number): void {
    const shown = new Set(ids);
    for (const [id, heard] of this.#pods.get(uid) ?? []) {
      if (shown.has(id) || heard >= look) continue;
      this.#pods.get(uid)?.delete(id);
      this.#owners.delete(id);
    }
    for (const id of shown) this.note(uid, id, look);
    if (this.#pods.get(uid)?.size === 0) this.#pods.delete(uid);
  }
}

/**
 * Does something with each item, at most so many at once; rejects with the first failure, after all that had begun is
 * over.
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

interface Known {
  /** Number of the last look at it. */
  look: number;
  readonly outline: string;
  readonly state: PodRuntimeState;
}

export interface RuntimePodsOptions {
  readonly runtime: ContainerRuntime;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly callTimeoutMs: number;
  /** Called for each pod of which something changed, and when it is gone altogether. */
  readonly onChange: (uid: string) => void;
}

/**
 * Pods whose details are asked for at once in a look at everything, so that one that hangs does not hold up the others.
 */
const atOnce = 16;

/**
 * What the runtime has of each pod, as of the last look. Details are asked for only when the outline of a pod changed.
 * A look at one pod costs the same however many others there are.
 */
export class RuntimePods {
  readonly #options: RuntimePodsOptions;
  readonly #pods = new Map<string, Known>();
  readonly #owners = new SandboxOwners();
  /** Pods about which something is being done, by how many. */
  readonly #inHand = new Map<string, number>();
  #looks = 0;
  #lastMs: number | undefined;

  constructor(options: RuntimePodsOptions) {
    this.#options = options;
  }

  /** True once everything has been seen: before, absence proves nothing. */
  get complete(): boolean {
    return this.#lastMs !== undefined;
  }

  /** When everything was last seen, monotonic milliseconds. */
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

  /** Looks at everything. @throws when the runtime does not answer */
  async relist(signal: AbortSignal): Promise<void> {
    const { runtime, clock } = this.#options;
    const look = this.#next();
    const call = this.#call(signal);
    const [sandboxes, containers] = await Promise.all([
      runtime.listPodSandboxes(undefined, call),
      runtime.listContainers(undefined, call),
    ]);
    const seen = byPod(sandboxes, containers);
    for (const uid of this.#pods.keys()) if (!seen.has(uid)) this.#gone(uid, look);
    // Of most pods there is nothing to ask, so that many of them take no time.
    const changed = [...seen].filter(([uid, one]) => !this.#isSame(uid, outlineOf(one), look));
    await inParallel(changed, atOnce, ([uid, one]) => this.#learn(uid, one, look, signal));
    this.#lastMs = clock.monotonic();
  }

  /** Searches the runtime for all that it has of one pod. */
  async refresh(uid: string, signal: AbortSignal): Promise<PodRuntimeState | undefined> {
    const { runtime } = this.#options;
    const look = this.#next();
    const call = this.#call(signal);
    const filter = { labels: { [RuntimeLabel.podUid]: uid } };
    const [sandboxes, containers] = await Promise.all([
      runtime.listPodSandboxes(filter, call),
      runtime.listContainers(filter, call),
    ]);
    return this.#take(uid, { sandboxes, containers }, look, signal);
  }

  /** Notes that a sandbox was made for a pod, so that a look at the pod finds it. */
  note(uid: string, id: SandboxId): void {
    this.#owners.note(uid, id, this.#looks);
  }

  /** Looks at the sandboxes of a pod that are known, and at what is in them; searches nothing. */
  async look(uid: string, signal: AbortSignal): Promise<PodRuntimeState | undefined> {
    const { runtime } = this.#options;
    const look = this.#next();
    const call = this.#call(signal);
    const found = await Promise.all(
      this.#owners.sandboxesOf(uid).map(async (sandboxId) => {
        const [sandbox, containers] = await Promise.all([
          unlessGone(runtime.podSandboxStatus(sandboxId, call)),
          runtime.listContainers({ sandboxId }, call),
        ]);
        return { sandbox, containers };
      }),
    );
    found.sort((a, b) => (b.sandbox?.metadata.attempt ?? -1) - (a.sandbox?.metadata.attempt ?? -1));
    const sandboxes = found.map(({ sandbox }) => sandbox).filter(isThere);
    const containers = found.flatMap((one) => one.containers);
    return this.#take(uid, { sandboxes, containers }, look, signal, sandboxes);
  }

  /** Looks at the pod of a sandbox. One that is none of the agent's is left alone. */
  async lookInto(id: SandboxId, signal: AbortSignal): Promise<void> {
    let uid = this.#owners.ownerOf(id);
    if (uid === undefined) {
      const [sandbox] = await this.#options.runtime.listPodSandboxes({ id }, this.#call(signal));
      uid = sandbox && podIdentityOf(sandbox.labels)?.uid;
      if (uid === undefined) return;
      this.note(uid, id);
    }
    await this.look(uid, signal);
  }

  /** Does something about a pod; whoever does it looks at the pod afterwards. */
  async whileInHand<T>(uid: string, act: () => Promise<T>): Promise<T> {
    this.#inHand.set(uid, (this.#inHand.get(uid) ?? 0) + 1);
    try {
      return await act();
    } finally {
      const others = (this.#inHand.get(uid) ?? 1) - 1;
      if (others > 0) this.#inHand.set(uid, others);
      else this.#inHand.delete(uid);
    }
  }

  /** True when an event tells nothing that is not known, or will not be looked at anyway by whoever brings it about. */
  shows(event: RuntimeEvent): boolean {
    if (event.type === 'resync') return false;
    const uid = this.#owners.ownerOf(event.sandboxId);
    if (uid !== undefined && this.#inHand.has(uid) && !isEnd(event)) return true;
    return isShown(event, uid === undefined ? undefined : this.get(uid));
  }

  #call(signal: AbortSignal): CallOptions {
    // Each call of a look listens to it; there is no leak to warn of.
    setMaxListeners(0, signal);
    return { signal, timeoutMs: this.#options.callTimeoutMs };
  }

  #next(): number {
    this.#looks += 1;
    return this.#looks;
  }

  async #take(
    uid: string,
    seen: Seen,
    look: number,
    signal: AbortSignal,
    boxes?: readonly PodSandboxStatus[],
  ): Promise<PodRuntimeState | undefined> {
    if (seen.sandboxes.length + seen.containers.length === 0) this.#gone(uid, look);
    else await this.#learn(uid, seen, look, signal, boxes);
    return this.get(uid);
  }

  #gone(uid: string, look: number): void {
    const known = this.#pods.get(uid);
    if (known !== undefined && known.look > look) return;
    this.#owners.showed(uid, [], look);
    if (this.#pods.delete(uid)) this.#options.onChange(uid);
  }

  /** True when a look shows nothing that is not known, by it or by a later one. */
  #isSame(uid: string, outline: string, look: number): boolean {
    const known = this.#pods.get(uid);
    if (known === undefined) return false;
    if (known.look > look) return true;
    if (known.outline !== outline) return false;
    known.look = look;
    return true;
  }

  /** A look that began earlier never takes the place of a later one. */
  async #learn(
    uid: string,
    seen: Seen,
    look: number,
    signal: AbortSignal,
    boxes?: readonly PodSandboxStatus[],
  ): Promise<void> {
    const outline = outlineOf(seen);
    if (this.#isSame(uid, outline, look)) return;
    const state = await this.#details(seen, this.get(uid), signal, boxes);
    if (state === undefined) return;
    const now = this.#pods.get(uid);
    if (now !== undefined && now.look > look) return;
    this.#pods.set(uid, { look, outline, state });
    this.#owners.showed(uid, sandboxIdsOf(seen), look);
    this.#options.onChange(uid);
  }

  async #details(
    seen: Seen,
    before: PodRuntimeState | undefined,
    signal: AbortSignal,
    known?: readonly PodSandboxStatus[],
  ): Promise<PodRuntimeState | undefined> {
    const { runtime, logger } = this.#options;
    const call = this.#call(signal);
    const identity = podIdentityOf((seen.sandboxes[0] ?? seen.containers[0])?.labels ?? {});
    if (identity === undefined) return undefined;
    // What has ended does not change any more.
    const ended = new Map(
      before?.containers.filter(({ state }) => state === 'exited').map((status) => [status.id, status]),
    );
    const statusOf = async ({ id, state }: Container): Promise<ContainerStatus | undefined> =>
      (state === 'exited' ? ended.get(id) : undefined) ?? unlessGone(runtime.containerStatus(id, call));
    try {
      const [boxes, statuses] = await Promise.all([
        known ?? Promise.all(seen.sandboxes.map(({ id }) => unlessGone(runtime.podSandboxStatus(id, call)))),
        Promise.all(seen.containers.map(statusOf)),
      ]);
      return { ...emptyState(identity), sandboxes: boxes.filter(isThere), containers: statuses.filter(isThere) };
    } catch (err) {
      // One pod that cannot be looked into hides nobody else; the next look asks again.
      if (!signal.aborted)
        logger.warn('pod could not be looked into', { component: 'pod-states', uid: identity.uid, err });
      return undefined;
    }
  }
}
