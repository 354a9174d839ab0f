import { MachineError } from '../../base/machine-error.ts';
import type { CpuState } from './cpu-state.ts';
import { type CpuTopology, formatCpuSet, parseCpuSet, takeCpus } from './cpu-topology.ts';

/** A container requests more exclusive CPUs than are free. */
export class CpuShortageError extends Error {
  constructor(wanted: number, free: number) {
    super(`not enough cpus available to satisfy request: requested=${wanted}, available=${free}`);
    this.name = 'CpuShortageError';
  }
}

/**
 * Which container owns which CPUs: see docs/reference/agent-rules.md#exclusive-cpus. The first `reserved` shared CPUs
 * are never assigned, so that the shared set is never empty.
 */
export class CpuAssignments {
  readonly #topology: CpuTopology;
  readonly #reserved: ReadonlySet<number>;
  readonly #shared: Set<number>;
  readonly #pods = new Map<string, Map<string, readonly number[]>>();

  /** @throws MachineError when the machine has fewer CPUs than are reserved */
  constructor(topology: CpuTopology, reserved: number) {
    this.#topology = topology;
    this.#shared = new Set(topology.map(({ id }) => id));
    const kept = takeCpus(topology, this.#shared, reserved);
    if (kept === undefined) {
      throw new MachineError(
        `--cpu-manager-policy=static: ${reserved} CPUs are reserved, but the machine has ${topology.length}`,
      );
    }
    this.#reserved = new Set(kept);
  }

  /**
   * Restores the assignments of a previous agent.
   *
   * @throws MachineError when the CPUs of the machine or the reservation have changed since
   */
  restore({ defaultCpuSet, entries }: CpuState, path: string): void {
    const all = new Set(this.#topology.map(({ id }) => id));
    const shared = parseCpuSet(defaultCpuSet);
    const seen = new Set(shared);
    let twice = false;
    for (const [uid, containers] of Object.entries(entries)) {
      for (const [name, text] of Object.entries(containers)) {
        const cpus = [...parseCpuSet(text)];
        twice ||= cpus.some((cpu) => seen.has(cpu));
        for (const cpu of cpus) seen.add(cpu);
        this.#set(uid, name, cpus);
      }
    }
    const same = seen.size === all.size && [...all].every((cpu) => seen.has(cpu));
    const kept = [...this.#reserved].every((cpu) => shared.has(cpu));
    if (twice || !same || !kept) {
      const because =
        same && !twice
          ? 'CPUs that are now reserved are assigned to containers'
          : 'its CPUs differ from those of this machine';
      throw new MachineError(
        `--cpu-manager-policy: ${path}: ${because}; drain the node, remove the file and restart the agent`,
      );
    }
    for (const cpu of all) if (!shared.has(cpu)) this.#shared.delete(cpu);
  }

  state(): Pick<CpuState, 'defaultCpuSet' | 'entries'> {
    const entries = [...this.#pods].map(([uid, containers]) => [
      uid,
      Object.fromEntries([...containers].map(([name, cpus]) => [name, formatCpuSet(cpus)])),
    ]);
    return { defaultCpuSet: formatCpuSet(this.#shared), entries: Object.fromEntries(entries) };
  }

  uids(): string[] {
    return [...this.#pods.keys()];
  }

  /** Names of the containers of a pod that have exclusive CPUs. */
  names(uid: string): string[] {
    return [...(this.#pods.get(uid)?.keys() ?? [])];
  }

  /** The CPUs on which a container may run. */
  cpusOf(uid: string, name: string): Iterable<number> {
    return this.#pods.get(uid)?.get(name) ?? this.#shared;
  }

  /**
   * Assigns exclusive CPUs to a container; an existing assignment is kept. Returns whether something changed. @throws
   * CpuShortageError
   */
  assign(uid: string, name: string, count: number): boolean {
    if (this.#pods.get(uid)?.has(name)) return false;
    const free = new Set([...this.#shared].filter((cpu) => !this.#reserved.has(cpu)));
    const cpus = takeCpus(this.#topology, free, count);
    if (cpus === undefined) throw new CpuShortageError(count, free.size);
    for (const cpu of cpus) this.#shared.delete(cpu);
    this.#set(uid, name, cpus);
    return true;
  }

  /** Releases the CPUs of the containers of a pod. Returns whether something changed. */
  release(uid: string, names: readonly string[] = this.names(uid)): boolean {
    const containers = this.#pods.get(uid);
    let changed = false;
    for (const name of names) {
      for (const cpu of containers?.get(name) ?? []) this.#shared.add(cpu);
      changed = containers?.delete(name) === true || changed;
    }
    if (containers?.size === 0) this.#pods.delete(uid);
    return changed;
  }

  #set(uid: string, name: string, cpus: readonly number[]): void {
    const containers = this.#pods.get(uid) ?? new Map<string, readonly number[]>();
    this.#pods.set(uid, containers.set(name, cpus));
  }
}
