import type { NodeInfo } from '../cluster/node-info.ts';
import type { CountsByNode } from '../cluster/pod-counts.ts';

/** Sums by topology domain: nodes whose label `topologyKey` has the same value are one domain, called place here. */
export class PlaceCounts {
  readonly #byKey = new Map<string, Map<string, number>>();

  add(topologyKey: string, node: NodeInfo, by: number): void {
    const value = node.labels[topologyKey];
    if (value === undefined) return;
    let counts = this.#byKey.get(topologyKey);
    if (counts === undefined) {
      counts = new Map();
      this.#byKey.set(topologyKey, counts);
    }
    const count = (counts.get(value) ?? 0) + by;
    if (count !== 0) counts.set(value, count);
    else {
      counts.delete(value);
      if (counts.size === 0) this.#byKey.delete(topologyKey);
    }
  }

  addAll(topologyKey: string, counts: CountsByNode, factor = 1): void {
    for (const [node, count] of counts) this.add(topologyKey, node, count * factor);
  }

  get isEmpty(): boolean {
    return this.#byKey.size === 0;
  }

  at(topologyKey: string, node: NodeInfo): number {
    const value = node.labels[topologyKey];
    return value === undefined ? 0 : (this.#byKey.get(topologyKey)?.get(value) ?? 0);
  }

  /** True when a topology domain that the node belongs to has a sum above 0. */
  hasAny(node: NodeInfo): boolean {
    for (const topologyKey of this.#byKey.keys()) if (this.at(topologyKey, node) > 0) return true;
    return false;
  }

  /** The total of all topology domains that the node belongs to. */
  totalOf(node: NodeInfo): number {
    let total = 0;
    for (const topologyKey of this.#byKey.keys()) total += this.at(topologyKey, node);
    return total;
  }
}
