import { MachineError } from '../../base/machine-error.ts';
import type { CpuState } from './cpu-state.ts';
import { type CpuTopology, formatCpuSet, parseCpuSet, takeCpus } from './cpu-topology.ts';

/** A container asks for more CPUs to itself than are free. */
export class CpuShortageError extends Error {
  constructor(wanted: number, free: number) {
    super(`not enough CPUs available to satisfy the request: ${wanted} are asked for, ${free} can be had`);
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

  /** @throws MachineError when fewer CPUs are there than are reserved */
  constructor(topology: CpuTopology, reserved: number) {
    this.#topology = topology;
    this.#shared = new Set(topology.map(({ id }) => id));
    const kept = takeCpus(topology, this.#shared, reserved);
    if (kept === undefined) {
      throw new MachineError(
        `--cpu-manager-policy=static: ${reserved} CPUs are reserved, and there are ${topology.length}`,
      );
    }
    this.#reserved = new Set(kept);
  }

  /**
   * Goes on where another agent ended.
   * @throws MachineError when the machine, or what is reserved, has changed since
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
          ? 'CPUs that are reserved now are given to containers'
          : 'its CPUs are not those of this machine';
      throw new MachineError(
        `--cpu-manager-policy: ${path}: ${because}; drain the node, remove the file and start again`,
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

  /** Names of containers of a pod that have CPUs to themselves. */
  names(uid: string): string[] {
    return [...(this.#pods.get(uid)?.keys() ?? [])];
  }

  /** The CPUs on which a container may run. */
  cpusOf(uid: string, name: string): Iterable<number> {
    return this.#pods.get(uid)?.get(name) ?? this.#shared;
  }

  /** Gives a container CPUs; what it has already it keeps. Whether something changed. @throws CpuShortageError */
  assign(uid: string, name: string, count: number): boolean {
    if (this.#pods.get(uid)?.has(name)) return false;
    const free = new Set([...this.#shared].filter((cpu) => !this.#reserved.has(cpu)));
    const cpus = takeCpus(this.#topology, free, count);
    if (cpus === undefined) throw new CpuShortageError(count, free.size);
    for (const cpu of cpus) this.#shared.delete(cpu);
    this.#set(uid, name, cpus);
    return true;
  }

  /** Takes back what containers of a pod have, of all or of these. Whether something changed. */
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
