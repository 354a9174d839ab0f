import { once } from 'node:events';
import type { Writable } from 'node:stream';

/**
 * Writes to a stream; the promise, if there is one, resolves when it takes more. A stream that is not wanted or closed
 * takes everything.
 */
export function into(target: Writable | undefined, data: Buffer): Promise<void> | undefined {
  if (target === undefined || target.destroyed || target.writableEnded || target.write(data)) return undefined;
  const closed = once(target, 'close').then(() => {});
  return Promise.race([once(target, 'drain').then(() => {}), closed]);
}
