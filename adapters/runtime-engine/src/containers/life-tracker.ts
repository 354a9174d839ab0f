import type { EventFeed, SandboxId } from '@keelson/container-runtime';

/** Stage in the life cycle of a container or sandbox; it only advances. */
export type Stage = 'created' | 'running' | 'ended' | 'removed';

const maxRemoved = 2_000;

const order: readonly Stage[] = ['created', 'running', 'ended', 'removed'];

/**
 * Converts observations of containers and sandboxes to events, each of which is published once and in order. The
 * observations come from the engine's event stream, from lists and from the adapter's own calls.
 */
export class LifeTracker {
  readonly #feed: EventFeed;
  readonly #now: () => number;
  readonly #stages = new Map<string, Stage>();
  readonly #removed: string[] = [];

  constructor(feed: EventFeed, now: () => number) {
    this.#feed = feed;
    this.#now = now;
  }

  stageOf(id: string): Stage | undefined {
    return this.#stages.get(id);
  }

  /** Records the initial stage without publishing an event. */
  begin(id: string, stage: Stage): void {
    if (!this.#stages.has(id)) this.#stages.set(id, stage);
  }

  sandbox(id: SandboxId, stage: Stage): void {
    if (!this.#advance(id, stage)) return;
    if (stage === 'created') return;
    const types = { running: 'sandboxReady', ended: 'sandboxNotReady', removed: 'sandboxRemoved' } as const;
    this.#feed.publish({ type: types[stage], sandboxId: id, at: this.#now() });
  }

  container(containerId: string, sandboxId: SandboxId, stage: Stage): void {
    if (!this.#advance(containerId, stage)) return;
    const types = {
      created: 'containerCreated',
      running: 'containerStarted',
      ended: 'containerExited',
      removed: 'containerRemoved',
    } as const;
    this.#feed.publish({ type: types[stage], containerId, sandboxId, at: this.#now() });
  }

  #advance(id: string, stage: Stage): boolean {
    const before = this.#stages.get(id);
    if (before !== undefined && order.indexOf(stage) <= order.indexOf(before)) return false;
    if (stage === 'removed') this.#rememberRemoved(id);
    else this.#stages.set(id, stage);
    return stage !== 'removed' || before !== undefined;
  }

  /** Keeps recently removed ids, because events of the engine about them may still arrive. */
  #rememberRemoved(id: string): void {
    this.#stages.set(id, 'removed');
    this.#removed.push(id);
    if (this.#removed.length <= maxRemoved) return;
    for (const old of this.#removed.splice(0, maxRemoved / 2)) this.#stages.delete(old);
  }
}
