import { readFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { parseCpuSet } from './cpu-set.ts';

/** A CPU: one thread of a core. */
export interface Cpu {
  readonly id: number;
  /** Unique over all sockets. */
  readonly core: string;
  readonly socket: number;
}

export type CpuTopology = readonly Cpu[];

const read = (path: string) => readFile(path, 'utf8').catch(() => '');

/**
 * The CPUs that are in use, below a directory such as `/sys/devices/system/cpu`. Without such files each is a core of
 * one socket.
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
