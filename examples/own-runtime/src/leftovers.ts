import { readdir, readFile } from 'node:fs/promises';

/** Environment variable by which the processes of this runtime are recognized. */
export const ownerVariable = 'KEELSON_CHILD_RUNTIME';

/**
 * Kills processes of an earlier agent that was killed before it could stop them. Containers of this runtime do not
 * survive their agent (`survivesRestart: false`), so none may still run when the lists of the new runtime are empty.
 */
export async function killLeftovers(stateDirectory: string): Promise<void> {
  const marker = `${ownerVariable}=${stateDirectory}`;
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  for (const pid of pids) {
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
    if (environment.split('\0').includes(marker)) kill(pid, 'SIGKILL');
  }
}

/** Sends a signal; a negative number addresses a process group. Does nothing when the process no longer exists. */
export function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
