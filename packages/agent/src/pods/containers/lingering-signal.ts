import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core';

/** A signal that fires some time after another one, with a function that releases both. */
export interface LingeringSignal {
  readonly signal: AbortSignal;
  release(): void;
}

/** A signal that fires `ms` after `signal`, for work that should be finished if possible. */
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
