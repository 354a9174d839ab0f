import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { constants } from 'node:os';
import { cpuSeconds, residentBytes } from './cpu-time.ts';

const canPin = spawnSync('taskset', ['-c', '0', 'true'], { stdio: 'ignore' }).status === 0;

/** Core of the measured process, and core of the load. */
export const cores = { subject: 0, load: 1 } as const;

const startLimitMs = 60_000;

/** Time in which a process must end after it was requested to. */
const stopLimitMs = 10_000;

const running = new Set<ChildProcess>();

/**
 * Ends the child process with this one, also when SIGINT, SIGTERM or SIGHUP ends this one. It would disturb what is
 * measured later.
 *
 * @returns the child process
 */
export function endedWithParent<C extends ChildProcess>(child: C): C {
  if (process.listenerCount('exit', killRunning) === 0) {
    process.once('exit', killRunning);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.once(signal, () => process.exit(128 + constants.signals[signal]));
  }
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

function killRunning(): void {
  for (const child of running) child.kill('SIGKILL');
}

/** Words that run a command on one core, where the system can do that. */
export function pinned(core: number, command: string, args: readonly string[]): [string, string[]] {
  return canPin ? ['taskset', ['-c', String(core), command, ...args]] : [command, [...args]];
}

/** A process that prints `ready PORT` (or another word pair) when it can be measured. */
export class Spawned {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly port: number;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.#exited = new Promise((resolve) => child.once('exit', resolve));
    this.port = port;
  }

  /**
   * Starts the process, on the subject's core unless another is named, and waits for the line that `ready` matches; its
   * first group is the port.
   */
  static start(
    command: string,
    args: readonly string[],
    ready = /^ready (\d+)$/m,
    core: number = cores.subject,
  ): Promise<Spawned> {
    const [program, words] = pinned(core, command, args);
    const child = endedWithParent(spawn(program, words, { stdio: ['pipe', 'pipe', 'inherit'] }));
    return new Promise((resolve, reject) => {
      let output = '';
      const fail = (error: Error) => {
        clearTimeout(timer);
        child.kill('SIGKILL');
        reject(error);
      };
      const timer = setTimeout(
        () => fail(new Error(`${command} ${args.join(' ')} was not ready within ${startLimitMs / 1000} s\n${output}`)),
        startLimitMs,
      );
      const read = (chunk: Buffer) => {
        output += String(chunk);
        const match = ready.exec(output);
        if (match === null) return;
        clearTimeout(timer);
        // What the process prints later is discarded.
        child.stdout.off('data', read).resume();
        resolve(new Spawned(child, Number(match[1])));
      };
      child.stdout.on('data', read);
      child.once('error', fail);
      child.once('exit', (code) =>
        fail(new Error(`${command} ${args.join(' ')} ended with ${code} before it was ready\n${output}`)),
      );
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** CPU seconds used so far. taskset replaces itself by the command, so the pid is the command's. */
  cpu(): number {
    return cpuSeconds(this.pid);
  }

  memory(): number {
    return residentBytes(this.pid);
  }

  /** Sends a line on stdin. */
  send(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  /** Ends the process, by force when it does not end itself. */
  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill('SIGTERM');
      const timer = setTimeout(() => this.#child.kill('SIGKILL'), stopLimitMs);
      await this.#exited;
      clearTimeout(timer);
    }
  }
}
