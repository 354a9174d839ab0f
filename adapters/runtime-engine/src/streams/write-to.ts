import { once } from 'node:events';
import type { Writable } from 'node:stream';

/**
 * Writes to a stream. The returned promise, if any, resolves when the stream accepts more data. Data for an absent or
 * closed stream is discarded.
 */
export function writeTo(target: Writable | undefined, data: Buffer): Promise<void> | undefined {
  if (target === undefined || target.destroyed || target.writableEnded || target.write(data)) return undefined;
  const closed = once(target, 'close').then(() => {});
  return Promise.race([once(target, 'drain').then(() => {}), closed]);
}
