import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

const waitMs = 30_000;

/** Of a process that has ended it is empty, whether its parent has heard of that or not. */
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

async function until<T>(what: string, probe: () => Promise<T | undefined>): Promise<T> {
  for (const deadline = performance.now() + waitMs; ; await delay(5)) {
    const found = await probe();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`not within ${waitMs / 1000} s: ${what}`);
  }
}

/**
 * Kills the process whose command line has all the words, as soon as there is one, and resolves when it runs no more.
 * @throws Error after half a minute
 */
export async function killProcessWith(...words: readonly string[]): Promise<void> {
  const pid = await until(`a process with ${words.join(', ')}`, () => processWith(words));
  process.kill(Number(pid), 'SIGKILL');
  await until(`the end of process ${pid}`, async () => ((await commandLine(pid)) === '' ? true : undefined));
}
