import type { Target } from './service-table.ts';

/** Maximum number of clients whose target is remembered, per port of a service. */
const maxRemembered = 10_000;

export interface ChoiceOptions {
  /** Keeps a client at its target until it was idle for this long. Undefined: every connection is independent. */
  readonly affinityMs: number | undefined;
  /** Returns the monotonic time in milliseconds. */
  readonly now: () => number;
}

/**
 * Targets that get new connections, as in kube-proxy: the ready ones, and when there is none, those that still serve
 * while they terminate.
 */
export function usableTargets(
  targets: readonly Target[],
  isLocal: ((target: Target) => boolean) | undefined,
): Target[] {
  const candidates = isLocal === undefined ? targets : targets.filter(isLocal);
  const ready = candidates.filter((target) => target.ready);
  return ready.length > 0 ? ready : candidates.filter(({ serving, terminating }) => serving && terminating);
}

/** Distributes connections over the targets of a port. */
export class TargetChoice {
  readonly #now: () => number;
  #affinityMs: number | undefined;
  #targets: readonly Target[] = [];
  #next = 0;
  /** The target of each client, by address of the client; the least recently seen client is the first. */
  readonly #clients = new Map<string, { target: string; at: number }>();

  constructor({ affinityMs, now }: ChoiceOptions) {
    this.#affinityMs = affinityMs;
    this.#now = now;
  }

  get size(): number {
    return this.#targets.length;
  }

  /** Replaces the targets. Clients of a target that is gone are distributed again. */
  update(targets: readonly Target[], affinityMs: number | undefined): void {
    this.#targets = targets;
    this.#affinityMs = affinityMs;
    if (affinityMs === undefined) this.#clients.clear();
    const known = new Set(targets.map(textOf));
    for (const [client, { target }] of this.#clients) if (!known.has(target)) this.#clients.delete(client);
  }

  /** Whether the address may still get packets of a flow that began earlier. */
  has(target: Target): boolean {
    return this.#targets.some((other) => textOf(other) === textOf(target));
  }

  /** Returns the target for a new connection of a client. Excludes the targets that have refused this connection. */
  choose(client: string, tried: readonly Target[] = []): Target | undefined {
    const remembered = tried.length === 0 ? this.#remembered(client) : undefined;
    const target = remembered ?? this.#inTurn(tried);
    if (target !== undefined && this.#affinityMs !== undefined) this.#remember(client, target);
    return target;
  }

  #remembered(client: string): Target | undefined {
    const entry = this.#affinityMs === undefined ? undefined : this.#clients.get(client);
    if (entry === undefined || this.#now() - entry.at >= (this.#affinityMs ?? 0)) return undefined;
    return this.#targets.find((target) => textOf(target) === entry.target);
  }

  #inTurn(tried: readonly Target[]): Target | undefined {
    for (let i = 0; i < this.#targets.length; i++) {
      const target = this.#targets[this.#next++ % this.#targets.length];
      if (target !== undefined && !tried.includes(target)) return target;
    }
    return undefined;
  }

  #remember(client: string, target: Target): void {
    this.#clients.delete(client);
    this.#clients.set(client, { target: textOf(target), at: this.#now() });
    if (this.#clients.size <= maxRemembered) return;
    const oldest = this.#clients.keys().next().value;
    if (oldest !== undefined) this.#clients.delete(oldest);
  }
}

export function textOf({ address, port }: Target): string {
  return `${address.includes(':') ? `[${address}]` : address}:${port}`;
}
