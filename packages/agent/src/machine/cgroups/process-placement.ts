import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '@keelson/core';
import type { CgroupConfig } from '../../base/config/cgroup-config.ts';
import type { CgroupTree } from './cgroup-tree.ts';

/** What is asked of the processes of a machine. */
export interface ProcessTable {
  /** Whether the process is a thread of the kernel, which runs no program. */
  isOfKernel(pid: number): Promise<boolean>;
  /**
   * The process that listens at a unix socket of one of these paths; undefined when none does, or it cannot be seen.
   */
  listenerAt(socketPaths: readonly string[]): Promise<number | undefined>;
}

/** The processes below a directory such as `/proc`. */
export function processTable(root: string): ProcessTable {
  return {
    async isOfKernel(pid) {
      return readlink(join(root, String(pid), 'exe')).then(
        () => false,
        // One that has ended meanwhile has no program either, and cannot be moved.
        () => true,
      );
    },
    async listenerAt(socketPaths) {
      const inode = await listeningInode(join(root, 'net/unix'), socketPaths);
      if (inode === undefined) return undefined;
      const names = await readdir(root);
      // The first process may have opened it on behalf of the other, which it starts when somebody connects.
      for (const pid of names.filter((name) => /^\d+$/.test(name) && name !== '1')) {
        if (await holds(join(root, pid, 'fd'), `socket:[${inode}]`)) return Number(pid);
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

async function holds(folder: string, target: string): Promise<boolean> {
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
  /** Finds the process of the runtime; undefined when it is not there now. */
  readonly runtimePid: () => Promise<number | undefined>;
  readonly logger: Logger;
}

/** Rounds over the root's processes: those that a process starts while it is moved are found by the next one. */
const sweeps = 5;

/** Keeps the agent, the runtime and what runs at the root in the groups of their options. */
export class Placements {
  readonly #options: PlacementsOptions;
  #told = '';

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
      if (systemGroup !== '') await this.#sweep(systemGroup);
      this.#told = '';
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      if (problem !== this.#told) logger.warn('processes are not in their cgroups', { component: 'cgroups', problem });
      this.#told = problem;
    }
  }

  async #place(group: string, pid: number): Promise<void> {
    const { tree } = this.#options;
    await tree.create(group);
    if (!(await tree.isMember(group, pid))) await tree.attach(group, pid);
  }

  /**
   * Threads of the kernel stay where they are, and so does the first process of the machine, which others are placed
   * by.
   */
  async #sweep(group: string): Promise<void> {
    const { tree, processes } = this.#options;
    await tree.create(group);
    for (let sweep = 0; sweep < sweeps; sweep += 1) {
      let moved = 0;
      for (const pid of await tree.members('/')) {
        if (pid === 1 || (await processes.isOfKernel(pid))) continue;
        // In other hierarchies somebody else may have placed it.
        await tree.attach(group, pid, '/');
        moved += 1;
      }
      if (moved === 0) return;
    }
  }
}
