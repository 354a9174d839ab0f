import { RuntimeError } from '@keelson/container-runtime';
import { addAbortListener, removeAbortListener } from '@keelson/core/runtime';

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

/** A shared job. `signal` fires when all callers have canceled; `report` reports progress. */
export type Work<T, P> = (signal: AbortSignal, report: (progress: P) => void) => Promise<T>;

/**
 * Runs a job once for all concurrent callers with the same key. Each caller can cancel separately. The job is canceled
 * when the last caller has canceled.
 */
export class SharedJobs<T, P> {
  readonly #jobs = new Map<string, Job<T, P>>();

  /** True while a job with this key is running. A call of `run` joins it. */
  has(key: string): boolean {
    return this.#jobs.has(key);
  }

  /** Runs or joins a job. @throws `Aborted` when the signal fires; for the last caller, after the job has ended. */
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
        // A job that is being canceled cannot be joined.
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
  return new RuntimeError('Aborted', 'the pull was canceled', { cause: signal.reason });
}
