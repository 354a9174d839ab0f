import { createHash } from 'node:crypto';
import type { Container } from '@keelson/kinds';
import { isRecord } from '../base/is-record.ts';

const hashes = new WeakMap<Container, string>();

/**
 * Tells one specification of a container from another; the order of keys does not matter. A running container of
 * another hash is replaced.
 */
export function containerHash(container: Container): string {
  let hash = hashes.get(container);
  if (hash === undefined) {
    hash = createHash('sha256')
      .update(JSON.stringify(inOrder(container)))
      .digest('hex')
      .slice(0, 16);
    hashes.set(container, hash);
  }
  return hash;
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (!isRecord(value)) return value;
  return Object.keys(value)
    .sort()
    .filter((key) => value[key] !== undefined)
    .map((key) => [key, inOrder(value[key])]);
}
