import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '@keelson/core/runtime';
import type { CgroupConfig } from '../../base/config/cgroup-config.ts';
import type { CgroupTree } from './cgroup-tree.ts';

/** Queries about the processes of a machine. */
export interface ProcessTable {
  /** True for kernel threads, which have no program. */
  isOfKernel(pid: number): Promise<boolean>;
  /**
   * The process that listens at a unix socket with one of these paths; undefined when there is none or it is not
   * visible.
   */
  listenerAt(socketPaths: readonly string[]): Promise<number | undefined>;
}

/** The processes in a directory such as `/proc`. */
export function processTable(root: string): ProcessTable {
  return {
    async isOfKernel(pid) {
      return readlink(join(root, String(pid), 'exe')).then(
        () => false,
        // A process that has exited has no program either, and cannot be moved.
        () => true,
      );
    },
    async listenerAt(socketPaths) {
      const inode = await listeningInode(join(root, 'net/unix'), socketPaths);
      if (inode === undefined) return undefined;
      const names = await readdir(root);
      // Process 1 may have opened the socket for a process that it starts on the first connection.
      for (const pid of names.filter((name) => /^\d+$/.test(name) && name !== '1')) {
        if (await hasOpen(join(root, pid, 'fd'), `socket:[${inode}]`)) return Number(pid);
      }
      return undefined;
    },
  };
}

/** Columns: address, references, protocol, flags (00010000 = it accepts connections), type, state, inode, path. */
async function listeningInode(table: string, socketPaths: readonly string[]): Promise<string | undefined> {
  const text = await readFile(table, 'utf8').catch(() => '');
  for (const line of text.split('\n')) {
    const [, , , flags, , , inode, ...path] = line.trim().split(/\s+/);
    if (flags === '00010000' && socketPaths.includes(path.join(' '))) return inode;
  }
  return undefined;
}

async function hasOpen(folder: string, target: string): Promise<boolean> {
  for (const name of await readdir(folder).catch(() => [])) {
    if ((await readlink(join(folder, name)).catch(() => '')) === target) return true;
  }
  return false;
}

export interface PlacementsOptions {
  readonly tree: CgroupTree;
  readonly config: Pick<CgroupConfig, 'agentGroup' | 'runtimeGroup' | 'systemGroup'>;
  readonly processes: ProcessTable;
  /** The process of the agent. */
  readonly agentPid: number;
  /** Finds the process of the runtime; undefined when it does not run. */
  readonly runtimePid: () => Promise<number | undefined>;
  readonly logger: Logger;
}

/** Passes over the processes of the root cgroup: a process that is started during a pass is moved by the next one. */
const maxPasses = 5;

/** Keeps the agent, the runtime and the processes of the root cgroup in their configured cgroups. */
export class Placements {
  readonly #options: PlacementsOptions;
  #reported = '';

  constructor(options: PlacementsOptions) {
    this.#options = options;
  }

  async round(): Promise<void> {
    const { config, agentPid, runtimePid, logger } = this.#options;
    const { agentGroup, runtimeGroup, systemGroup } = config;
    try {
      if (agentGroup !== '') await this.#place(agentGroup, agentPid);
      const runtime = runtimeGroup === '' ? undefined : await runtimePid();
      if (runtime !== undefined) await this.#place(runtimeGroup, runtime);
      if (systemGroup !== '') await this.#moveAll(systemGroup);
      this.#reported = '';
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      if (problem !== this.#reported)
        logger.warn('processes could not be moved to their cgroups', { component: 'cgroups', problem });
      this.#reported = problem;
    }
  }

  async #place(group: string, pid: number): Promise<void> {
    const { tree } = this.#options;
    await tree.create(group);
    if (!(await tree.isMember(group, pid))) await tree.attach(group, pid);
  }

  /**
   * Moves all processes of the root cgroup except kernel threads and process 1, which places other processes itself.
   */
  async #moveAll(group: string): Promise<void> {
    const { tree, processes } = this.#options;
    await tree.create(group);
    for (let pass = 0; pass < maxPasses; pass += 1) {
      let moved = 0;
      for (const pid of await tree.members('/')) {
        if (pid === 1 || (await processes.isOfKernel(pid))) continue;
        // In another hierarchy the process may have been placed by another program.
        await tree.attach(group, pid, '/');
        moved += 1;
      }
      if (moved === 0) return;
    }
  }
}
