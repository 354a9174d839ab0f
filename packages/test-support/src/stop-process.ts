import { readdir, readFile } from 'node:fs/promises';
import { setImmediate as turn } from 'node:timers/promises';

/**
 * Stops a process as SIGSTOP does, and resolves when none of its threads runs any more: after the signal alone they
 * continue for a moment.
 */
export async function stopProcess(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  while (!(await isStopped(pid))) await turn();
}

async function isStopped(pid: number): Promise<boolean> {
  for (const thread of await readdir(`/proc/${pid}/task`)) {
    const stat = await readFile(`/proc/${pid}/task/${thread}/stat`, 'latin1').catch(() => '');
    // The state follows the program's name, which is in parentheses and may itself contain some. Without a state the
    // thread has ended meanwhile.
    const state = stat.charAt(stat.lastIndexOf(')') + 2);
    if (!['T', 'Z', 'X', ''].includes(state)) return false;
  }
  return true;
}
