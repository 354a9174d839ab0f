import type { Pod } from '@keelson/kinds';
import type { PodChange, PodConfigReader } from '../base/contracts/pod-source.ts';
import { fullNameOf, isMirrorPod, uidOf } from '../base/pod/pod-spec.ts';
import type { PodWorkers } from './pod-workers.ts';
import type { StatusReports } from './status/status-reports.ts';

export interface PodIntakeOptions {
  readonly config: PodConfigReader;
  readonly workers: PodWorkers;
  readonly mirrors: MirrorIndex;
  readonly reports: StatusReports;
}

/** Passes the pods of all sources to their workers, and keeps the index of mirror pods. */
export class PodIntake {
  readonly #options: PodIntakeOptions;
  #unsubscribe: () => void = () => {};

  constructor(options: PodIntakeOptions) {
    this.#options = options;
  }

  start(): void {
    const { config } = this.#options;
    this.#unsubscribe = config.subscribe((_, changes) => {
      for (const change of inOrder(changes)) this.#apply(change);
    });
    for (const pod of byAge(config.pods())) this.#apply({ op: 'add', pod, source: 'api' });
  }

  stop(): void {
    this.#unsubscribe();
  }

  #apply({ op, pod }: PodChange): void {
    if (isMirrorPod(pod)) {
      this.#applyMirror(op, pod);
      return;
    }
    const { workers, reports } = this.#options;
    if (op === 'remove') {
      workers.remove(uidOf(pod));
      return;
    }
    reports.observe(uidOf(pod), pod.status);
    if (op === 'reconcile') {
      const worker = workers.get(uidOf(pod));
      // Conditions written by other clients may be readiness gates.
      if (worker !== undefined && pod.spec.readinessGates?.length) worker.update(pod);
      return;
    }
    workers.update(pod);
  }

  #applyMirror(op: PodChange['op'], mirror: Pod): void {
    const { workers, mirrors, reports } = this.#options;
    if (op === 'remove') {
      mirrors.delete(mirror);
      return;
    }
    mirrors.set(mirror);
    for (const { pod, leaving } of workers.named(fullNameOf(mirror))) {
      if (pod && !leaving) reports.observe(uidOf(pod), mirror.status);
    }
  }
}

function byAge(pods: readonly Pod[]): Pod[] {
  return [...pods].sort((a, b) =>
    String(a.metadata?.creationTimestamp ?? '').localeCompare(String(b.metadata?.creationTimestamp ?? '')),
  );
}

/** Removals before additions; mirror pods before pods, since they may contain the earlier status of a static pod. */
function inOrder(changes: readonly PodChange[]): PodChange[] {
  const rank = ({ op, pod }: PodChange) => (op === 'remove' ? 0 : isMirrorPod(pod) ? 1 : 2);
  return [...changes].sort((a, b) => rank(a) - rank(b));
}

/** The mirror pods that the API server has for static pods of this node, by full name. */
export class MirrorIndex {
  readonly #mirrors = new Map<string, Pod>();

  get(fullName: string): Pod | undefined {
    return this.#mirrors.get(fullName);
  }

  set(mirror: Pod): void {
    this.#mirrors.set(fullNameOf(mirror), mirror);
  }

  /** Removes a mirror pod unless another one has replaced it under the same name. */
  delete(mirror: Pod): void {
    const name = fullNameOf(mirror);
    if (this.#mirrors.get(name)?.metadata?.uid === mirror.metadata?.uid) this.#mirrors.delete(name);
  }
}
