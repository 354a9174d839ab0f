import { setImmediate } from 'node:timers/promises';

/** Bodies and objects of more bytes are processed in several turns of the event loop. */
const largeBytes = 64 * 1024;

/**
 * Lets other work run between two steps of a request whose body or object has this many bytes. Each step of the largest
 * permitted one takes less than 100 ms; docs/adr/0030 has the measurements. Small ones, nearly all, go on at once.
 */
export function nextTurn(bytes: number): Promise<void> | undefined {
  return bytes > largeBytes ? setImmediate() : undefined;
}
