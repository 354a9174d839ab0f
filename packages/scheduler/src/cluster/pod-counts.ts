import type { NodeInfo } from './node-info.ts';
import type { PodInfo } from './pod-info.ts';
import type { PodTerm } from './pod-terms.ts';

/** Number of pods by node; nodes without such pods are absent. */
export type CountsByNode = ReadonlyMap<NodeInfo, number>;

function bump(counts: Map<NodeInfo, number>, node: NodeInfo, by: number): void {
  const count = (counts.get(node) ?? 0) + by;
  if (count === 0) counts.delete(node);
  else counts.set(node, count);
}

/** A condition on pods whose matches are counted. */
export interface CountedPods {
  /** Equal conditions have equal keys. */
  readonly key: string;
  readonly matches: (pod: PodInfo) => boolean;
  /** The result depends on labels of namespaces. */
  readonly byNamespaceLabels?: boolean;
}

interface Counter extends CountedPods {
  readonly counts: Map<NodeInfo, number>;
}

/** Maximum number of conditions; beyond it the least recently used ones are dropped. */
const maxCounters = 512;

/**
 * Counts pods that match conditions, by node. A condition is evaluated once for every pod when it is new, and then only
 * for pods that come and go.
 */
export class PodCounts {
  readonly #nodes: () => Iterable<NodeInfo>;
  /** Counters by key of the condition, the least recently used first. */
  readonly #counters = new Map<string, Counter>();

  constructor(nodes: () => Iterable<NodeInfo>) {
    this.#nodes = nodes;
  }

  of(condition: CountedPods): CountsByNode {
    let counter = this.#counters.get(condition.key);
    if (counter === undefined) counter = this.#create(condition);
    else this.#counters.delete(condition.key);
    this.#counters.set(condition.key, counter);
    return counter.counts;
  }

  change(pod: PodInfo, node: NodeInfo, by: 1 | -1): void {
    for (const counter of this.#counters.values()) if (counter.matches(pod)) bump(counter.counts, node, by);
  }

  /** Drops the counters whose conditions depend on labels of namespaces, because labels of a namespace have changed. */
  namespaceChanged(): void {
    for (const [key, counter] of this.#counters) if (counter.byNamespaceLabels) this.#counters.delete(key);
  }

  #create(condition: CountedPods): Counter {
    for (const oldest of this.#counters.keys()) {
      if (this.#counters.size < maxCounters) break;
      this.#counters.delete(oldest);
    }
    const counts = new Map<NodeInfo, number>();
    for (const node of this.#nodes())
      for (const pod of node.pods.values()) if (condition.matches(pod)) bump(counts, node, 1);
    return { ...condition, counts };
  }
}

/** A rule of assigned pods, and how many of them each node has. */
export interface IndexedTerm {
  readonly term: PodTerm;
  readonly counts: CountsByNode;
}

/** The rules of assigned pods about other pods: equal rules of many pods are one entry. */
export class TermIndex {
  readonly #entries = new Map<string, { readonly term: PodTerm; readonly counts: Map<NodeInfo, number> }>();

  change(terms: readonly PodTerm[], node: NodeInfo, by: 1 | -1): void {
    for (const term of terms) {
      let entry = this.#entries.get(term.id);
      if (entry === undefined) {
        entry = { term, counts: new Map() };
        this.#entries.set(term.id, entry);
      }
      bump(entry.counts, node, by);
      if (entry.counts.size === 0) this.#entries.delete(term.id);
    }
  }

  values(): Iterable<IndexedTerm> {
    return this.#entries.values();
  }
}
