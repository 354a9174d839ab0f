import type { PatchBudget } from './patch-budget.ts';

export { setOwn } from '../kind/decode-value.ts';

/** A JSON object. Keys such as `__proto__` are data like any other. */
export type JsonObject = Record<string, unknown>;

/** True for what JSON writes with braces. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The own property, or undefined; prototypes are not searched. */
export function getOwn(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Equality of JSON values: order of keys does not count, `-0` is 0. The budget pays for the keys of objects. */
export function jsonEquals(a: unknown, b: unknown, budget: PatchBudget): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => jsonEquals(item, b[i], budget));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  const keys = Object.keys(a);
  budget.spendOnKeys(keys.length);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && jsonEquals(a[key], b[key], budget));
}
