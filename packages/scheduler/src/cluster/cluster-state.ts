import type { Node, PersistentVolume, PersistentVolumeClaim, StorageClass } from '@keelson/kinds';
import { NodeInfo } from './node-info.ts';
import { type CountedPods, type CountsByNode, type IndexedTerm, PodCounts, TermIndex } from './pod-counts.ts';
import { assignedTo, isSameForOthers, type PodInfo } from './pod-info.ts';

/** Changes of the cluster after which a rejected pod may fit. */
export type ClusterChange =
  | 'NodeAdded'
  | 'NodeChanged'
  | 'PodAssigned'
  | 'PodChanged'
  | 'PodDeleted'
  | 'ClaimChanged'
  | 'NamespaceChanged';

export const allChanges: readonly ClusterChange[] = [
  'NodeAdded',
  'NodeChanged',
  'PodAssigned',
  'PodChanged',
  'PodDeleted',
  'ClaimChanged',
  'NamespaceChanged',
];

/** The state of a claim for a volume. */
export interface ClaimInfo {
  readonly phase: string;
  readonly volumeName: string;
  readonly deleting: boolean;
  /** True when at most one pod may use the claim (ReadWriteOncePod). */
  readonly exclusive: boolean;
  /** UID of the pod for which the claim was made. */
  readonly podUid: string | undefined;
  /** The claim while it has no volume. */
  readonly unbound?: PersistentVolumeClaim | undefined;
}

/** A budget of disruptions. */
export interface BudgetInfo {
  readonly namespace: string;
  readonly matches: (labels: Readonly<Record<string, string>>) => boolean;
  readonly allowed: number;
  /** Names of pods whose disruption is already counted. */
  readonly disrupted: ReadonlySet<string>;
}

interface Placed {
  readonly pod: PodInfo;
  readonly node: NodeInfo;
  /** True until an assignment by this scheduler is observed. */
  readonly assumed: boolean;
}

/** Nodes and the pods assigned to them, as observed and as assumed. Everything is updated with each change. */
export class ClusterState {
  readonly #nodes = new Map<string, NodeInfo>();
  readonly #placed = new Map<string, Placed>();
  /** Pods for which other pods of a node are being deleted, by node. */
  readonly #nominated = new Map<string, Map<string, PodInfo>>();
  readonly #imageNodes = new Map<string, number>();
  readonly #counts = new PodCounts(() => this.#nodes.values());
  readonly #antiAffinity = new TermIndex();
  readonly #affinity = new TermIndex();
  readonly #preferences = new TermIndex();
  readonly #namespaces = new Map<string, Readonly<Record<string, string>>>();
  readonly claims = new Map<string, ClaimInfo>();
  readonly volumes: Map<string, PersistentVolume> = new Map();
  readonly storageClasses: Map<string, StorageClass> = new Map();
  readonly budgets = new Map<string, BudgetInfo>();
  #list: NodeInfo[] | undefined;

  /** All nodes that exist. */
  get nodes(): readonly NodeInfo[] {
    this.#list ??= [...this.#nodes.values()].filter(({ node }) => node !== undefined);
    return this.#list;
  }

  /** A node that exists. */
  node(name: string): NodeInfo | undefined {
    const info = this.#nodes.get(name);
    return info?.node === undefined ? undefined : info;
  }

  setNode(name: string, node: Node | undefined): void {
    const info = this.#nodeInfo(name);
    this.#countImages(info, -1);
    if ((info.node === undefined) !== (node === undefined)) this.#list = undefined;
    info.setNode(node);
    this.#countImages(info, 1);
    this.#dropEmpty(info);
  }

  #countImages(info: NodeInfo, by: 1 | -1): void {
    for (const name of info.images.keys()) {
      const count = (this.#imageNodes.get(name) ?? 0) + by;
      if (count === 0) this.#imageNodes.delete(name);
      else this.#imageNodes.set(name, count);
    }
  }

  /** Number of nodes that have an image. */
  nodesWithImage(name: string): number {
    return this.#imageNodes.get(name) ?? 0;
  }

  /** An assigned pod was observed; replaces what was known or assumed about it. */
  observe(pod: PodInfo): void {
    const placed = this.#placed.get(pod.uid);
    if (placed !== undefined && isSameForOthers(placed.pod, pod)) {
      this.#placed.set(pod.uid, { pod, node: placed.node, assumed: false });
      placed.node.pods.set(pod.uid, pod);
      return;
    }
    this.remove(pod.uid);
    this.#place(pod, false);
  }

  /** Assumes a pod on a node before the assignment is observed. */
  assume(pod: PodInfo, nodeName: string): void {
    this.remove(pod.uid);
    this.#place(assignedTo(pod, nodeName), true);
  }

  /** Removes a pod that is assumed on a node; returns false when the pod is not assumed. */
  forget(uid: string): boolean {
    if (this.#placed.get(uid)?.assumed !== true) return false;
    this.remove(uid);
    return true;
  }

  isPlaced(uid: string): boolean {
    return this.#placed.has(uid);
  }

  placed(uid: string): PodInfo | undefined {
    return this.#placed.get(uid)?.pod;
  }

  /** Number of pods that were assumed and not observed yet. */
  get assumed(): number {
    let count = 0;
    for (const { assumed } of this.#placed.values()) if (assumed) count += 1;
    return count;
  }

  /** Removes a pod; returns it when it was assigned or assumed. */
  remove(uid: string): PodInfo | undefined {
    const placed = this.#placed.get(uid);
    if (placed === undefined) return undefined;
    this.#placed.delete(uid);
    const { pod, node } = placed;
    node.remove(uid);
    this.#index(pod, node, -1);
    this.#dropEmpty(node);
    return pod;
  }

  #place(pod: PodInfo, assumed: boolean): void {
    this.denominate(pod.uid);
    const node = this.#nodeInfo(pod.nodeName);
    this.#placed.set(pod.uid, { pod, node, assumed });
    node.add(pod);
    this.#index(pod, node, 1);
  }

  #index(pod: PodInfo, node: NodeInfo, by: 1 | -1): void {
    const { affinity, antiAffinity, preferredPods } = pod.requirements;
    this.#counts.change(pod, node, by);
    this.#antiAffinity.change(antiAffinity, node, by);
    this.#affinity.change(affinity, node, by);
    this.#preferences.change(preferredPods, node, by);
  }

  /** Nominates a pod for a node that is being cleared for it. */
  nominate(pod: PodInfo, nodeName: string): void {
    this.denominate(pod.uid);
    let pods = this.#nominated.get(nodeName);
    if (pods === undefined) {
      pods = new Map();
      this.#nominated.set(nodeName, pods);
    }
    pods.set(pod.uid, pod);
  }

  denominate(uid: string): void {
    for (const [nodeName, pods] of this.#nominated) {
      if (!pods.delete(uid)) continue;
      if (pods.size === 0) this.#nominated.delete(nodeName);
    }
  }

  nominatedFor(nodeName: string): Iterable<PodInfo> {
    return this.#nominated.get(nodeName)?.values() ?? [];
  }

  /** Numbers of pods that match a condition, by node. */
  count(condition: CountedPods): CountsByNode {
    return this.#counts.of(condition);
  }

  /** Required anti-affinity terms of assigned pods. */
  get antiAffinityTerms(): Iterable<IndexedTerm> {
    return this.#antiAffinity.values();
  }

  /** Required affinity terms of assigned pods. */
  get affinityTerms(): Iterable<IndexedTerm> {
    return this.#affinity.values();
  }

  /** Preferred terms of assigned pods. */
  get preferredTerms(): Iterable<IndexedTerm> {
    return this.#preferences.values();
  }

  /** Labels of a namespace. */
  readonly namespaceLabels = (name: string): Readonly<Record<string, string>> | undefined => this.#namespaces.get(name);

  setNamespace(name: string, labels: Readonly<Record<string, string>> | undefined): void {
    if (labels === undefined) this.#namespaces.delete(name);
    else this.#namespaces.set(name, labels);
    this.#counts.namespaceChanged();
  }

  #nodeInfo(name: string): NodeInfo {
    let info = this.#nodes.get(name);
    if (info === undefined) {
      info = new NodeInfo(name);
      this.#nodes.set(name, info);
    }
    return info;
  }

  /** A node that does not exist is kept as long as pods are assigned to it. */
  #dropEmpty(info: NodeInfo): void {
    if (info.node === undefined && info.pods.size === 0) this.#nodes.delete(info.name);
  }
}
