import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { addAbortListener, type Clock, pause, removeAbortListener } from '@keelson/core/runtime';
import { MachineError } from '../../base/machine-error.ts';

/** Period at which /proc/locks is polled, because the kernel does not notify of processes that wait for a lock. */
const pollMs = 1_000;

/** An exclusive lock of a file. */
export interface LockFile {
  /** Resolves when another process waits for the lock, or when the file was deleted or replaced. */
  readonly wanted: Promise<void>;
  /** Releases the lock. Idempotent. */
  release(): Promise<void>;
}

export interface LockFileOptions {
  readonly path: string;
  /** Whether to poll for other processes that wait for the lock. */
  readonly watch: boolean;
  readonly clock: Clock;
  /** Aborts the wait for the lock. */
  readonly signal: AbortSignal;
}

/**
 * Waits until this process has the exclusive lock of a file. Node.js cannot lock files, so a child process `flock` owns
 * the lock. It ends when its standard input is closed, so the lock is also released when this process is killed.
 *
 * @returns undefined when the signal aborted the wait
 * @throws MachineError when the file cannot be locked
 */
export async function takeLock({ path, watch, clock, signal }: LockFileOptions): Promise<LockFile | undefined> {
  const holder = spawn('flock', ['--no-fork', '--exclusive', path, 'sh', '-c', 'echo locked; exec cat >/dev/null'], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let errorOutput = '';
  holder.stderr.on('data', (chunk) => (errorOutput += String(chunk)));
  holder.stdin.on('error', () => {});
  const ended = new Promise<string>((resolve) => {
    holder.once('error', ({ message }) => resolve(message));
    holder.once('close', (code) => resolve(errorOutput.trim() || `exit code ${code}`));
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
  const wanted = watch ? waitForContention(path, holder, clock, stopped.signal) : new Promise<void>(() => {});
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
 * Resolves when another process waits for the lock. /proc/locks lists waiting processes in lines such as
 * `7: -> FLOCK ADVISORY WRITE 123 fe:01:4711 0 EOF`.
 */
async function waitForContention(path: string, holder: ChildProcess, clock: Clock, signal: AbortSignal): Promise<void> {
  const inode = await inodeOf(path);
  const waits = new RegExp(`^\\d+:\\s+->\\s+FLOCK\\s.*:${inode}\\s`, 'm');
  while (!signal.aborted) {
    const table = await readFile('/proc/locks', 'utf8').catch(() => '');
    const released = holder.exitCode !== null || holder.signalCode !== null || (await inodeOf(path)) !== inode;
    if (!signal.aborted && (released || waits.test(table))) return;
    await pause(clock, pollMs, signal);
  }
  // The lock was released by this process, which must not be reported as contention.
  await new Promise(() => {});
}

async function inodeOf(path: string): Promise<bigint | undefined> {
  return stat(path, { bigint: true }).then(
    ({ ino }) => ino,
    () => undefined,
  );
}
