import { readdir, readFile } from 'node:fs/promises';
import { until } from './test-helpers.ts';

/** The command line of a process. Empty for a process that has ended, even when its parent has not reaped it. */
async function commandLine(pid: string): Promise<string> {
  return readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '');
}

async function processWith(words: readonly string[]): Promise<string | undefined> {
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    const line = await commandLine(pid);
    if (words.every((word) => line.includes(word))) return pid;
  }
  return undefined;
}

/**
 * Kills the process whose command line has all the words, as soon as there is one, and resolves when it runs no more.
 * @throws Error after half a minute
 */
export async function killProcessWith(...words: readonly string[]): Promise<void> {
  const pid = await until(() => processWith(words), `a process with ${words.join(', ')}`);
  process.kill(Number(pid), 'SIGKILL');
  await until(async () => (await commandLine(pid)) === '', `the end of process ${pid}`);
}
