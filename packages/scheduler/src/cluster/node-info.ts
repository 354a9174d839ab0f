import type { Node, Taint } from '@keelson/kinds';
import type { HostPort, PodInfo } from './pod-info.ts';
import { addResources, noResources, type Resources, readResources } from './resources.ts';

/** A node with the pods assigned to it. Sums are updated with each pod, never recomputed. */
export class NodeInfo {
  readonly name: string;
  /** Undefined while pods are assigned to a node that does not exist. */
  node: Node | undefined;
  labels: Readonly<Record<string, string>> = {};
  taints: readonly Taint[] = [];
  allocatable: Readonly<Resources> = noResources();
  /** Largest number of pods. */
  maxPods = 0;
  /** Bytes by name of the images on the node. */
  images: ReadonlyMap<string, number> = new Map();
  readonly requested = noResources();
  /** {@link requested} with assumed amounts for containers that request no cpu or memory. */
  readonly scoredRequested = noResources();
  readonly pods = new Map<string, PodInfo>();
  readonly #ports = new Map<string, number>();

  constructor(name: string) {
    this.name = name;
  }

  get unschedulable(): boolean {
    return this.node?.spec?.unschedulable === true;
  }

  setNode(node: Node | undefined): void {
    this.node = node;
    this.labels = node?.metadata?.labels ?? {};
    this.taints = node?.spec?.taints ?? [];
    this.allocatable = readResources(node?.status?.allocatable);
    this.maxPods = this.allocatable['pods'] ?? 0;
    this.images = new Map(
      (node?.status?.images ?? []).flatMap(({ names = [], sizeBytes = 0 }) =>
        names.map((name): [string, number] => [name, Number(sizeBytes)]),
      ),
    );
  }

  add(pod: PodInfo): void {
    this.pods.set(pod.uid, pod);
    this.#count(pod, 1);
  }

  /** Removes a pod, and returns it if it was assigned to this node. */
  remove(uid: string): PodInfo | undefined {
    const pod = this.pods.get(uid);
    if (pod === undefined) return undefined;
    this.pods.delete(uid);
    this.#count(pod, -1);
    return pod;
  }

  #count({ requirements }: PodInfo, sign: 1 | -1): void {
    addResources(this.requested, requirements.requests, sign);
    addResources(this.scoredRequested, requirements.scoredRequests, sign);
    for (const port of requirements.hostPorts) {
      for (const key of [portKey(port), portKey({ ...port, ip: '*' })]) {
        const count = (this.#ports.get(key) ?? 0) + sign;
        if (count === 0) this.#ports.delete(key);
        else this.#ports.set(key, count);
      }
    }
  }

  /** True when no pod uses the port. The address 0.0.0.0 stands for all addresses. */
  isFree(port: HostPort): boolean {
    if (this.#ports.size === 0) return true;
    if (port.ip === '0.0.0.0') return !this.#ports.has(portKey({ ...port, ip: '*' }));
    return !this.#ports.has(portKey(port)) && !this.#ports.has(portKey({ ...port, ip: '0.0.0.0' }));
  }
}

function portKey({ ip, protocol, port }: HostPort): string {
  return `${ip}/${protocol}/${port}`;
}
