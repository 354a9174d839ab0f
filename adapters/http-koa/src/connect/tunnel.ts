import type { Socket } from 'node:net';
import { addAbortListener, removeAbortListener } from '@keelson/core';

/** How often a silent connection is asked by the system whether its other end is still there. */
const keepAliveMs = 30_000;

/**
 * Joins two connections until one of them ends; what it has sent before still arrives at the other. Each is read only
 * as fast as the other takes it. Resolves when both are closed. Aborting ends both.
 */
export function joinSockets(a: Socket, b: Socket, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let open = 2;
    const cut = () => {
      a.destroy();
      b.destroy();
    };
    const closed = () => {
      open -= 1;
      if (open > 0) return;
      removeAbortListener(signal, cut);
      resolve();
    };
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      from.setTimeout(0);
      from.setNoDelay(true);
      from.setKeepAlive(true, keepAliveMs);
      // An error is followed by `close`.
      from.on('error', () => {});
      from.pipe(to, { end: false });
      from.once('end', () => to.destroySoon());
      from.once('close', () => {
        to.destroySoon();
        closed();
      });
      if (from.destroyed) {
        to.destroySoon();
        closed();
      }
    }
    addAbortListener(signal, cut);
    if (signal.aborted) cut();
  });
}
