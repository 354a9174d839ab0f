import { isJsonObject } from '@keelson/core/internal';

/** Equality of JSON values; a field that is undefined equals one that is absent. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => sameValue(item, b[i]));
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  // `Object.keys` would be the larger part of the cost of a comparison.
  for (const key in a) if (!sameValue(a[key], b[key])) return false;
  for (const key in b) if (b[key] !== undefined && a[key] === undefined) return false;
  return true;
}
