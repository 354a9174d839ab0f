import { setMaxListeners } from 'node:events';

/** Listens to a caller's signal. One signal may end any number of calls, which is no leak that the platform should warn of. */
export function onAbort(signal: AbortSignal, listener: () => void): void {
  setMaxListeners(0, signal);
  signal.addEventListener('abort', listener, { once: true });
}
