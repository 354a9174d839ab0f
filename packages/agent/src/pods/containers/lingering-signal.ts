import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core';

/** A signal that fires some time after another one, and how to let go of both. */
export interface LingeringSignal {
  readonly signal: AbortSignal;
  release(): void;
}

/** For what should rather be finished than broken off: it gets `ms` more when `signal` fires. */
export function lingeringSignal(signal: AbortSignal, clock: Clock, ms: number): LingeringSignal {
  const controller = new AbortController();
  let cancel = () => {};
  const linger = () => {
    cancel = clock.after(ms, () => controller.abort(signal.reason));
  };
  if (signal.aborted) linger();
  else addAbortListener(signal, linger);
  return {
    signal: controller.signal,
    release() {
      removeAbortListener(signal, linger);
      cancel();
    },
  };
}
