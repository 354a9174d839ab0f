import { RuntimeError } from '@keelson/container-runtime';
import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core/runtime';

/** Resolves after `ms` milliseconds. @throws `Aborted` when the signal fires before */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      cancel();
      reject(new RuntimeError('Aborted', 'the caller gave up', { cause: signal?.reason }));
    };
    const cancel = clock.after(ms, () => {
      removeAbortListener(signal, onAbort);
      resolve();
    });
    if (signal?.aborted) onAbort();
    else addAbortListener(signal, onAbort);
  });
}
