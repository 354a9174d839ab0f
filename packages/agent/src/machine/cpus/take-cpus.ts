import type { Cpu, CpuTopology } from './cpu-topology.ts';

type Part = 'socket' | 'core';

function partsOf(cpus: Iterable<Cpu>, part: Part): Map<string | number, Cpu[]> {
  const parts = new Map<string | number, Cpu[]>();
  for (const cpu of cpus) {
    const of = parts.get(cpu[part]);
    if (of === undefined) parts.set(cpu[part], [cpu]);
    else of.push(cpu);
  }
  return parts;
}

/**
 * Takes CPUs that are close to each other and leaves the others together: whole sockets first, then whole cores, then
 * single threads, near what was taken already and where least is free. Undefined when too few are free.
 */
export function takeCpus(topology: CpuTopology, free: ReadonlySet<number>, count: number): number[] | undefined {
  if (count > free.size) return undefined;
  const taken = new Set<number>();
  const left = () => topology.filter(({ id }) => free.has(id) && !taken.has(id));

  /** What is to be preferred comes first. */
  const order = (cpus: readonly Cpu[]) => {
    const near = new Set(topology.filter(({ id }) => taken.has(id)).map(({ socket }) => socket));
    const sockets = partsOf(cpus, 'socket');
    const cores = partsOf(cpus, 'core');
    const rank = ({ socket, core, id }: Cpu) => [
      near.has(socket) ? 0 : 1,
      sockets.get(socket)?.length ?? 0,
      socket,
      cores.get(core)?.length ?? 0,
      id,
    ];
    return [...cpus].sort((a, b) => compare(rank(a), rank(b)));
  };

  const takeWhole = (part: Part) => {
    const sizes = partsOf(topology, part);
    for (;;) {
      const parts = partsOf(left(), part);
      const first = order(left()).find((cpu) => {
        const cpus = parts.get(cpu[part]) ?? [];
        return cpus.length === sizes.get(cpu[part])?.length && cpus.length <= count - taken.size;
      });
      if (first === undefined) return;
      for (const { id } of parts.get(first[part]) ?? []) taken.add(id);
    }
  };

  takeWhole('socket');
  takeWhole('core');
  while (taken.size < count) {
    const [next] = order(left());
    // Some of the free ones are not of this machine.
    if (next === undefined) return undefined;
    taken.add(next.id);
  }
  return [...taken].sort((a, b) => a - b);
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [index, value] of a.entries()) if (value !== b[index]) return value - (b[index] ?? 0);
  return 0;
}
