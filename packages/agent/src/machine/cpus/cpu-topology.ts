import { readFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';

/** Parses a list of CPUs such as `0-2,7`; an empty text is an empty set. @throws RangeError */
export function parseCpuSet(text: string): Set<number> {
  const cpus = new Set<number>();
  for (const part of text.trim().split(',').filter(Boolean)) {
    const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(part.trim()) ?? [];
    if (first === undefined || Number(last) < Number(first))
      throw new RangeError(`${JSON.stringify(text)} is not a list of CPUs`);
    for (let cpu = Number(first); cpu <= Number(last); cpu += 1) cpus.add(cpu);
  }
  return cpus;
}

/** Formats CPUs as a sorted list with ranges. */
export function formatCpuSet(cpus: Iterable<number>): string {
  const ranges: [first: number, last: number][] = [];
  for (const cpu of [...new Set(cpus)].sort((a, b) => a - b)) {
    const range = ranges.at(-1);
    if (range !== undefined && cpu === range[1] + 1) range[1] = cpu;
    else ranges.push([cpu, cpu]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',');
}

/** A logical CPU: one hardware thread of a core. */
export interface Cpu {
  readonly id: number;
  /** Unique among all sockets. */
  readonly core: string;
  readonly socket: number;
}

export type CpuTopology = readonly Cpu[];

const read = (path: string) => readFile(path, 'utf8').catch(() => '');

/**
 * The online CPUs, read from a directory such as `/sys/devices/system/cpu`. Without topology files each CPU is a core
 * of one socket.
 */
export async function readTopology(root: string): Promise<CpuTopology> {
  const online = (await read(join(root, 'online'))).trim();
  const ids = online === '' ? cpus().map((_, id) => id) : [...parseCpuSet(online)];
  return Promise.all(
    ids.map(async (id) => {
      const at = (name: string) => read(join(root, `cpu${id}`, 'topology', name));
      const [core, socket] = await Promise.all([at('core_id'), at('physical_package_id')]);
      const socketId = Math.max(0, Number(socket));
      return { id, core: core === '' ? `cpu-${id}` : `${socketId}-${core.trim()}`, socket: socketId };
    }),
  );
}

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
 * Selects CPUs that are close to each other and keeps the remaining ones together: whole sockets first, then whole
 * cores, then single threads, near the selected CPUs and where the fewest CPUs are free. Undefined when too few are
 * free.
 */
export function takeCpus(topology: CpuTopology, free: ReadonlySet<number>, count: number): number[] | undefined {
  if (count > free.size) return undefined;
  const taken = new Set<number>();
  const left = () => topology.filter(({ id }) => free.has(id) && !taken.has(id));

  /** Sorts preferred CPUs first. */
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
    // Some free CPUs do not belong to this machine.
    if (next === undefined) return undefined;
    taken.add(next.id);
  }
  return [...taken].sort((a, b) => a - b);
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [index, value] of a.entries()) if (value !== b[index]) return value - (b[index] ?? 0);
  return 0;
}
