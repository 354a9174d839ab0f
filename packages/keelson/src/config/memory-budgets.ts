import {
  defaultStorageBudgets,
  isJsonObject,
  rejectUnknownKeys,
  type StorageBudgets,
  UsageError,
  wholeNumber,
} from '@keelson/core/internal';
import type { HttpBudgets } from '@keelson/http-koa';

/**
 * Bounds, in bytes, on the memory that a control plane uses for data kept only to save repeated work. An absent bound
 * has its default. Smaller bounds cost CPU time, never correctness.
 */
export type MemoryBudgets = Partial<StorageBudgets & HttpBudgets>;

/** Names of the HTTP server's bounds. They are repeated, because a control plane without HTTP does not load it. */
const httpBudgets: { readonly [K in keyof HttpBudgets]: true } = {
  listBuffersBytes: true,
  compressedListsBytes: true,
  recentBodiesBytes: true,
};
const keys = [...Object.keys(defaultStorageBudgets), ...Object.keys(httpBudgets)];

/** Reads an object of bounds in bytes; 0 means that nothing is kept. @throws UsageError */
export function parseMemoryBudgets(raw: unknown, source: string): MemoryBudgets {
  if (!isJsonObject(raw)) throw new UsageError(`${source} must be an object with ${keys.join(', ')}`);
  rejectUnknownKeys(raw, keys, source);
  const given = Object.entries(raw).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([key, value]) => [key, wholeNumber(value, `${source}.${key}`)]));
}
