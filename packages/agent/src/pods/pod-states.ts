import { type Container, type ContainerRuntime, isRuntimeError, type PodSandbox } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core';
import { podIdentityOf, RuntimeLabel } from '../containers/runtime-labels.ts';
import { emptyState, type PodRuntimeState } from './pod-runtime-state.ts';

interface Known {
  /** Number of the look that showed it. */
  readonly look: number;
  /** Ids and states of everything, to see at a glance whether something changed. */
  readonly outline: string;
  readonly state: PodRuntimeState;
}

interface Seen {
  sandboxes: PodSandbox[];
  containers: Container[];
}

export interface PodStatesOptions {
  readonly runtime: ContainerRuntime;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly callTimeoutMs: number;
  /** Called for each pod of which something changed, and when it is gone altogether. */
  readonly onChange: (uid: string) => void;
}

/** What the runtime has of each pod, as of the last look. Details are asked for only when the outline of a pod changed. */
export class PodStates {
  readonly #options: PodStatesOptions;
  readonly #pods = new Map<string, Known>();
  #looks = 0;
  #lastMs: number | undefined;

  constructor(options: PodStatesOptions) {
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

  all(): PodRuntimeState[] {
    return [...this.#pods.values()].map(({ state }) => state);
  }

  /** Looks at everything. @throws when the runtime does not answer */
  async relist(signal: AbortSignal): Promise<void> {
    const { runtime, clock, callTimeoutMs } = this.#options;
    const look = this.#next();
    const call = { signal, timeoutMs: callTimeoutMs };
    const [sandboxes, containers] = await Promise.all([
      runtime.listPodSandboxes(undefined, call),
      runtime.listContainers(undefined, call),
    ]);
    const seen = group(sandboxes, containers);
    for (const uid of [...this.#pods.keys()]) if (!seen.has(uid)) this.#gone(uid, look);
    for (const [uid, one] of seen) await this.#learn(uid, one, look, signal);
    this.#lastMs = clock.monotonic();
  }

  /** Looks at one pod, after something was done about it. */
  async refresh(uid: string, signal: AbortSignal): Promise<PodRuntimeState | undefined> {
    const { runtime, callTimeoutMs } = this.#options;
    const look = this.#next();
    const call = { signal, timeoutMs: callTimeoutMs };
    const filter = { labels: { [RuntimeLabel.podUid]: uid } };
    const [sandboxes, containers] = await Promise.all([
      runtime.listPodSandboxes(filter, call),
      runtime.listContainers(filter, call),
    ]);
    const one = group(sandboxes, containers).get(uid);
    if (one === undefined) this.#gone(uid, look);
    else await this.#learn(uid, one, look, signal);
    return this.get(uid);
  }

  #next(): number {
    this.#looks += 1;
    return this.#looks;
  }

  #gone(uid: string, look: number): void {
    const known = this.#pods.get(uid);
    if (known === undefined || known.look > look) return;
    this.#pods.delete(uid);
    this.#options.onChange(uid);
  }

  /** A look that began earlier never takes the place of a later one. */
  async #learn(uid: string, seen: Seen, look: number, signal: AbortSignal): Promise<void> {
    const outline = outlineOf(seen);
    const known = this.#pods.get(uid);
    if (known !== undefined && (known.look > look || known.outline === outline)) return;
    const state = await this.#details(seen, signal);
    if (state === undefined) return;
    const now = this.#pods.get(uid);
    if (now !== undefined && now.look > look) return;
    this.#pods.set(uid, { look, outline, state });
    this.#options.onChange(uid);
  }

  async #details({ sandboxes, containers }: Seen, signal: AbortSignal): Promise<PodRuntimeState | undefined> {
    const { runtime, callTimeoutMs, logger } = this.#options;
    const call = { signal, timeoutMs: callTimeoutMs };
    const labels = (sandboxes[0] ?? containers[0])?.labels ?? {};
    const identity = podIdentityOf(labels);
    if (identity === undefined) return undefined;
    try {
      const [boxes, statuses] = await Promise.all([
        Promise.all(sandboxes.map(({ id }) => unlessGone(runtime.podSandboxStatus(id, call)))),
        Promise.all(containers.map(({ id }) => unlessGone(runtime.containerStatus(id, call)))),
      ]);
      return { ...emptyState(identity), sandboxes: boxes.filter(isThere), containers: statuses.filter(isThere) };
    } catch (err) {
      // One pod that cannot be looked into hides nobody else; the next look asks again.
      if (!signal.aborted) logger.warn('pod could not be looked into', { component: 'pod-states', uid: identity.uid, err });
      return undefined;
    }
  }
}

function group(sandboxes: readonly PodSandbox[], containers: readonly Container[]): Map<string, Seen> {
  const pods = new Map<string, Seen>();
  const of = (uid: string): Seen => {
    const known = pods.get(uid) ?? { sandboxes: [], containers: [] };
    pods.set(uid, known);
    return known;
  };
  for (const sandbox of sandboxes) {
    const identity = podIdentityOf(sandbox.labels);
    if (identity !== undefined) of(identity.uid).sandboxes.push(sandbox);
  }
  for (const container of containers) {
    const identity = podIdentityOf(container.labels);
    if (identity !== undefined) of(identity.uid).containers.push(container);
  }
  return pods;
}

function outlineOf({ sandboxes, containers }: Seen): string {
  return [...sandboxes, ...containers].map(({ id, state }) => `${id}:${state}`).join(' ');
}

async function unlessGone<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isRuntimeError(error, 'NotFound')) return undefined;
    throw error;
  }
}

function isThere<T>(value: T | undefined): value is T {
  return value !== undefined;
}
