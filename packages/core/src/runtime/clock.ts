import { addAbortListener, removeAbortListener } from '../meta/abort-listeners.ts';

/** Time as a parameter. Packages read the time and set timers in no other way, unless they state why. */
export interface Clock {
  /** Wall time, epoch milliseconds; may jump. */
  now(): number;
  /** Monotonic milliseconds; differences only. */
  monotonic(): number;
  /** Calls back once after `ms`; the returned function cancels. Never keeps the process alive. */
  after(ms: number, callback: () => void): () => void;
}

/** The clock of the machine. */
export const systemClock: Clock = {
  now: Date.now,
  monotonic: performance.now.bind(performance),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms` of the clock, or when the signal aborts. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = () => {
      cancel();
      removeAbortListener(signal, finish);
      resolve();
    };
    const cancel = clock.after(ms, finish);
    addAbortListener(signal, finish);
  });
}
