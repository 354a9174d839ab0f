import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { pause } from '@keelson/client';
import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core';
import { MachineError } from '../../base/machine-error.ts';

/** Files are looked at this often: nothing tells of somebody who waits for a lock. */
const lookMs = 1_000;

/** A file that this process has locked for itself alone. */
export interface LockFile {
  /** Resolves when somebody else waits for the lock, or has taken the file away. */
  readonly wanted: Promise<void>;
  /** Idempotent. */
  release(): Promise<void>;
}

export interface LockFileOptions {
  readonly path: string;
  /** Looks for somebody who waits. */
  readonly watch: boolean;
  readonly clock: Clock;
  /** Gives up waiting for the lock. */
  readonly signal: AbortSignal;
}

/**
 * Waits until the lock of a file is this process's. Node has no lock of its own: a `flock` beside this process holds
 * it, and lets go when this process ends, however that happens. Undefined when the signal ended the wait. @throws
 * MachineError when the file cannot be locked
 */
export async function takeLock({ path, watch, clock, signal }: LockFileOptions): Promise<LockFile | undefined> {
  const holder = spawn('flock', ['--no-fork', '--exclusive', path, 'sh', '-c', 'echo locked; exec cat >/dev/null'], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let said = '';
  holder.stderr.on('data', (chunk) => (said += String(chunk)));
  holder.stdin.on('error', () => {});
  const ended = new Promise<string>((resolve) => {
    holder.once('error', ({ message }) => resolve(message));
    holder.once('close', (code) => resolve(said.trim() === '' ? `exit code ${code}` : said.trim()));
  });
  const abort = () => holder.kill('SIGKILL');
  addAbortListener(signal, abort);
  if (signal.aborted) abort();
  const locked = once(holder.stdout, 'data').then(() => undefined);
  locked.catch(() => {});
  const problem = await Promise.race([locked, ended]);
  removeAbortListener(signal, abort);
  if (signal.aborted) {
    abort();
    return undefined;
  }
  if (problem !== undefined) throw new MachineError(`--lock-file: ${path} cannot be locked: ${problem}`);
  const stopped = new AbortController();
  const wanted = watch ? lookForOthers(path, holder, clock, stopped.signal) : new Promise<void>(() => {});
  return {
    wanted,
    async release() {
      stopped.abort();
      holder.stdin.end();
      await ended;
    },
  };
}

/**
 * The table of locks shows who waits below the lock that is waited for: `7: -> FLOCK ADVISORY WRITE 123 fe:01:4711 0
 * EOF`.
 */
async function lookForOthers(path: string, holder: ChildProcess, clock: Clock, signal: AbortSignal): Promise<void> {
  const inode = await inodeOf(path);
  const waits = new RegExp(`^\\d+:\\s+->\\s+FLOCK\\s.*:${inode}\\s`, 'm');
  while (!signal.aborted) {
    const table = await readFile('/proc/locks', 'utf8').catch(() => '');
    const lost = holder.exitCode !== null || holder.signalCode !== null || (await inodeOf(path)) !== inode;
    if (!signal.aborted && (lost || waits.test(table))) return;
    await pause(clock, lookMs, signal);
  }
  // Released: nobody hears any more.
  await new Promise(() => {});
}

async function inodeOf(path: string): Promise<bigint | undefined> {
  return stat(path, { bigint: true }).then(
    ({ ino }) => ino,
    () => undefined,
  );
}
