import type { EventFeed, SandboxId } from '@keelson/container-runtime';

/** How far a container or sandbox has come; it never goes back. */
export type Stage = 'created' | 'running' | 'ended' | 'removed';

const maxBuried = 2_000;

const order: readonly Stage[] = ['created', 'running', 'ended', 'removed'];

/**
 * Turns what is learnt about containers, from whatever source and however often, into events that are told once and in
 * order. Sources are the engine's event stream, lists, and the adapter's own calls.
 */
export class LifeTracker {
  readonly #feed: EventFeed;
  readonly #now: () => number;
  readonly #stages = new Map<string, Stage>();
  readonly #buried: string[] = [];

  constructor(feed: EventFeed, now: () => number) {
    this.#feed = feed;
    this.#now = now;
  }

  stageOf(id: string): Stage | undefined {
    return this.#stages.get(id);
  }

  /** What is so from the start is no news. */
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
    if (stage === 'removed') this.#bury(id);
    else this.#stages.set(id, stage);
    return stage !== 'removed' || before !== undefined;
  }

  /** Removed ones are remembered for a while: the engine's own events about them may still be on their way. */
  #bury(id: string): void {
    this.#stages.set(id, 'removed');
    this.#buried.push(id);
    if (this.#buried.length <= maxBuried) return;
    for (const old of this.#buried.splice(0, maxBuried / 2)) this.#stages.delete(old);
  }
}
