import { RuntimeError } from '@keelson/container-runtime';
import { addAbortListener, removeAbortListener } from '@keelson/core';

interface Job<T, P> {
  readonly result: Promise<T>;
  readonly controller: AbortController;
  readonly listeners: Set<(progress: P) => void>;
  members: number;
}

export interface Membership<P> {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: P) => void;
}

/** What a job is given: a signal that fires when nobody wants the result any more, and a way to tell how it goes on. */
export type Work<T, P> = (signal: AbortSignal, report: (progress: P) => void) => Promise<T>;

/**
 * Work that is done once for all who ask for it at the same time. Everybody may give up alone; the work ends when the
 * last one has.
 */
export class SharedJobs<T, P> {
  readonly #jobs = new Map<string, Job<T, P>>();

  /** True while such a job runs; who asks now joins it. */
  has(key: string): boolean {
    return this.#jobs.has(key);
  }

  /** @throws `Aborted` when the signal fires; for the last member, after the work has ended */
  async run(key: string, work: Work<T, P>, { signal, onProgress }: Membership<P> = {}): Promise<T> {
    if (signal?.aborted) throw aborted(signal);
    const job = this.#jobs.get(key) ?? this.#begin(key, work);
    job.members += 1;
    if (onProgress !== undefined) job.listeners.add(onProgress);
    try {
      return await orAborted(job.result, signal);
    } finally {
      if (onProgress !== undefined) job.listeners.delete(onProgress);
      job.members -= 1;
      if (job.members === 0 && this.#jobs.get(key) === job) {
        // Nobody can join what is being ended.
        this.#jobs.delete(key);
        job.controller.abort();
        await job.result.catch(() => {});
      }
    }
  }

  #begin(key: string, work: Work<T, P>): Job<T, P> {
    const controller = new AbortController();
    const listeners = new Set<(progress: P) => void>();
    const report = (progress: P) => {
      for (const listener of listeners) listener(progress);
    };
    const result = work(controller.signal, report).finally(() => {
      if (this.#jobs.get(key) === job) this.#jobs.delete(key);
    });
    const job: Job<T, P> = { result, controller, listeners, members: 0 };
    this.#jobs.set(key, job);
    return job;
  }
}

function orAborted<T>(result: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return result;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(aborted(signal));
    addAbortListener(signal, onAbort);
    result.then(resolve, reject).finally(() => removeAbortListener(signal, onAbort));
  });
}

function aborted(signal: AbortSignal): RuntimeError {
  return new RuntimeError('Aborted', 'the pull was given up', { cause: signal.reason });
}
