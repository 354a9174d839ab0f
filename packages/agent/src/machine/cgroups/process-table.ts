import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';

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
