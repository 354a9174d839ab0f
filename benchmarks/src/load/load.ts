import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { cores, endedWithParent, pinned } from '../measure/spawned.ts';
import type { LoadJob, LoadResult } from './protocol.ts';

const program = fileURLToPath(new URL('./load-server.js', import.meta.url));

/** Time that a job may take beyond the duration it names. */
const jobLimitMs = 60_000;

type Job<K extends LoadJob['kind']> = Extract<LoadJob, { kind: K }>;

/** The load process, seen from the benchmark. One job at a time; a job that does not end, fails. */
export class Load {
  readonly #child: ChildProcess;
  readonly #exited: Promise<never>;
  #number = 0;

  constructor() {
    const [command, args] = pinned(cores.load, process.execPath, [program]);
    this.#child = endedWithParent(spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }));
    this.#exited = new Promise((_, reject) => {
      this.#child.once('error', reject);
      this.#child.once('exit', (code) => reject(new Error(`the load process ended with ${code}`)));
    });
    // The caller that waits for a job is notified.
    this.#exited.catch(() => {});
  }

  /** Requests for a while; throws when any was refused, because a failed request costs less than a served one. */
  async requests(job: Omit<Job<'requests'>, 'kind' | 'firstNumber'>): Promise<LoadResult> {
    return this.#counted({ kind: 'requests', firstNumber: this.#number, ...job });
  }

  /** Opens watches that stay until {@link unwatch}. */
  async watch(job: Omit<Job<'watch'>, 'kind'>): Promise<void> {
    await this.#run({ kind: 'watch', ...job });
  }

  /** Writes, and waits each time until every watcher has what was written. */
  fanOut(job: Omit<Job<'fanOut'>, 'kind' | 'firstNumber'>): Promise<LoadResult> {
    return this.#counted({ kind: 'fanOut', firstNumber: this.#number, ...job });
  }

  /** Writes at a rate, and waits until every watcher has all of it. */
  paced(job: Omit<Job<'paced'>, 'kind' | 'firstNumber'>): Promise<LoadResult> {
    return this.#counted({ kind: 'paced', firstNumber: this.#number, ...job });
  }

  async unwatch(): Promise<void> {
    await this.#run({ kind: 'unwatch' });
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    await this.#exited.catch(() => {});
  }

  async #counted(job: LoadJob): Promise<LoadResult> {
    const result = await this.#run(job);
    if (result === undefined) throw new Error('the load answered nothing');
    this.#number = result.nextNumber;
    const failures = Object.entries(result.failures).map(([status, count]) => `${count} with status ${status}`);
    if (failures.length > 0) throw new Error(`of ${result.requests} requests failed ${failures.join(', ')}`);
    return result;
  }

  async #run(job: LoadJob): Promise<LoadResult | undefined> {
    const limitMs = jobLimitMs + ('durationMs' in job ? (job.durationMs ?? 0) : 0);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`the load did not finish "${job.kind}" within ${limitMs / 1000} s`)),
        limitMs,
      );
    });
    const answered = new Promise<LoadResult | undefined>((resolve, reject) => {
      this.#child.once('message', (answer: { result?: LoadResult; error?: string }) => {
        if (answer.error === undefined) resolve(answer.result);
        else reject(new Error(answer.error));
      });
      this.#child.send(job);
    });
    try {
      return await Promise.race([answered, late, this.#exited]);
    } finally {
      clearTimeout(timer);
    }
  }
}
