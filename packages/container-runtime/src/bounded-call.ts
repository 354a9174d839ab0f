import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core/runtime';
import type { CallOptions } from './call-options.ts';
import { RuntimeError } from './runtime-error.ts';

/**
 * The options that the callee receives. The signal is created on first access, because most calls end before they are
 * aborted and never read it.
 */
function innerOptions(): { readonly options: CallOptions; abort(failure: RuntimeError): void } {
  let controller: AbortController | undefined;
  let failure: RuntimeError | undefined;
  return {
    options: {
      get signal() {
        if (controller === undefined) {
          controller = new AbortController();
          if (failure !== undefined) controller.abort(failure);
        }
        return controller.signal;
      },
    },
    abort(reason) {
      failure = reason;
      controller?.abort(reason);
    },
  };
}

/**
 * Limits a call by the signal and the timeout of `options`. The callee receives a signal that is aborted at the limit.
 * Its result is not awaited after that, so a callee that ignores the signal does not delay the caller.
 * @throws `Aborted`, `DeadlineExceeded`
 */
export function boundedCall<T>(
  clock: Clock,
  call: string,
  options: CallOptions,
  run: (options: CallOptions) => Promise<T>,
): Promise<T> {
  const { signal, timeoutMs } = options;
  if (signal === undefined && timeoutMs === undefined) return run(options);
  if (signal?.aborted)
    return Promise.reject(new RuntimeError('Aborted', `${call}: the caller gave up`, { cause: signal.reason }));
  const inner = innerOptions();
  return new Promise<T>((resolve, reject) => {
    let cancelTimer = () => {};
    const settle = () => {
      cancelTimer();
      removeAbortListener(signal, onAbort);
    };
    const giveUp = (error: RuntimeError) => {
      settle();
      reject(error);
      inner.abort(error);
    };
    const onAbort = () => giveUp(new RuntimeError('Aborted', `${call}: the caller gave up`, { cause: signal?.reason }));
    addAbortListener(signal, onAbort);
    if (timeoutMs !== undefined) {
      const late = () => giveUp(new RuntimeError('DeadlineExceeded', `${call}: no answer within ${timeoutMs} ms`));
      cancelTimer = clock.after(timeoutMs, late);
    }
    run(inner.options).then(
      (value) => {
        settle();
        resolve(value);
      },
      (error: unknown) => {
        settle();
        reject(error);
      },
    );
  });
}
