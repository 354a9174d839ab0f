import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { cores, pinned } from '../measure/spawned.ts';
import type { LoadJob, LoadResult } from './protocol.ts';

const program = fileURLToPath(new URL('./load-server.js', import.meta.url));

/** The load process, seen from the benchmark. One job at a time. */
export class Load {
  readonly #child: ChildProcess;
  #number = 0;

  constructor() {
    const [command, args] = pinned(cores.load, process.execPath, [program]);
    this.#child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  }

  /** Requests for a while; throws when any was refused, because a failed request costs less than a served one. */
  async requests(job: Omit<Extract<LoadJob, { kind: 'requests' }>, 'kind' | 'firstNumber'>): Promise<LoadResult> {
    const result = await this.#run({ kind: 'requests', firstNumber: this.#number, ...job });
    if (result === undefined) throw new Error('the load answered nothing');
    this.#number = result.nextNumber;
    if (result.failures > 0) throw new Error(`${result.failures} of ${result.requests} requests failed`);
    return result;
  }

  async watch(port: number, watchers: number, request: string): Promise<void> {
    await this.#run({ kind: 'watch', port, watchers, request });
  }

  async drain(bytes: number): Promise<void> {
    await this.#run({ kind: 'drain', bytes });
  }

  async unwatch(): Promise<void> {
    await this.#run({ kind: 'unwatch' });
  }

  async stop(): Promise<void> {
    const gone = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGTERM');
    await gone;
  }

  #run(job: LoadJob): Promise<LoadResult | undefined> {
    return new Promise((resolve, reject) => {
      this.#child.once('message', (answer: { result?: LoadResult; error?: string }) => {
        if (answer.error === undefined) resolve(answer.result);
        else reject(new Error(answer.error));
      });
      this.#child.send(job);
    });
  }
}
