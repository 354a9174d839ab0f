export { setOwn } from '../kind/set-own.ts';

/** A JSON object. Keys such as `__proto__` are data like any other. */
export type JsonObject = Record<string, unknown>;

/** True for what JSON writes with braces. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The own property, or undefined; never looks at prototypes. */
export function getOwn(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Equality of JSON values: order of keys does not count, `-0` is 0. */
export function jsonEquals(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => jsonEquals(item, b[i]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  const keys = Object.keys(b);
  for (const key of keys) {
    if (!Object.hasOwn(a, key) || !jsonEquals(a[key], b[key])) return false;
  }
  return Object.keys(a).length === keys.length;
}
