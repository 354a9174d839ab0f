import type { Node } from '@keelson/kinds';
import { readyStatus } from './taints.ts';

/** State of a zone: enough nodes are ready, too few are, or none is. */
type ZoneState = 'normal' | 'partial' | 'full';

/** Rates and thresholds as in kube-controller-manager. */
const evictionsPerSecond = 0.1;
const secondaryPerSecond = 0.01;
const unhealthyShare = 0.55;
const leastUnhealthy = 3;
const largeCluster = 50;

interface Zone {
  readonly state: ZoneState;
  readonly size: number;
}

export function zoneOf({ metadata }: Node): string {
  const { labels = {} } = metadata ?? {};
  return `${labels['topology.kubernetes.io/region'] ?? ''}/${labels['topology.kubernetes.io/zone'] ?? ''}`;
}

/**
 * Limits the rate at which failed nodes of a zone are drained. When many nodes of a zone fail at the same time, a
 * failure of the network or of the controller itself is more likely than a failure of the nodes. When all nodes of all
 * zones fail, nothing is evicted.
 */
export class Zones {
  #zones: ReadonlyMap<string, Zone> = new Map();
  #disrupted = false;
  /** Monotonic time of the next eviction, by zone. */
  readonly #next = new Map<string, number>();

  /** Counts the nodes that are ready. Returns true when a disruption of all zones has just ended. */
  update(nodes: readonly Node[]): boolean {
    const counts = new Map<string, { ready: number; others: number }>();
    for (const node of nodes) {
      const status = readyStatus(node);
      const zone = zoneOf(node);
      const count = counts.get(zone) ?? { ready: 0, others: 0 };
      if (status === 'True') count.ready += 1;
      else if (status !== undefined) count.others += 1;
      counts.set(zone, count);
    }
    this.#zones = new Map(
      [...counts].map(([name, { ready, others }]) => [name, { state: stateOf(ready, others), size: ready + others }]),
    );
    const before = this.#disrupted;
    this.#disrupted = this.#zones.size > 0 && [...this.#zones.values()].every(({ state }) => state === 'full');
    const ended = before && !this.#disrupted;
    if (ended) this.#next.clear();
    return ended;
  }

  /** True when no node of any zone is ready. */
  get disrupted(): boolean {
    return this.#disrupted;
  }

  /** Returns whether a node of the zone may be drained now. If so, the next node may be drained only after a pause. */
  tryEvict(zone: string, now: number): boolean {
    const rate = this.#rate(this.#zones.get(zone));
    if (rate === 0 || now < (this.#next.get(zone) ?? 0)) return false;
    this.#next.set(zone, now + 1000 / rate);
    return true;
  }

  #rate(zone: Zone | undefined): number {
    if (this.#disrupted || zone === undefined) return 0;
    if (zone.state !== 'partial') return evictionsPerSecond;
    return zone.size > largeCluster ? secondaryPerSecond : 0;
  }
}

function stateOf(ready: number, others: number): ZoneState {
  if (ready === 0 && others > 0) return 'full';
  return others >= leastUnhealthy && others / (ready + others) >= unhealthyShare ? 'partial' : 'normal';
}
