/** A JSON object. Keys such as `__proto__` are data like any other. */
export type JsonObject = Record<string, unknown>;

/** True for what JSON writes with braces. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Sets a plain own property whatever its name is. Assigning `__proto__` would change the object's prototype
 * instead, and it is a legal key of labels, data and every other map.
 */
export function setOwn(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true });
  } else {
    target[name] = value;
  }
}

/** The own property, or undefined; prototypes are not searched. */
export function getOwn(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** A private copy of a JSON value; several times cheaper than `structuredClone`, which also copies other types. */
export function copyJson<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyJson) as T;
  if (!isJsonObject(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) setOwn(copy, key, copyJson(value[key]));
  return copy as T;
}

function definedKeys(value: Record<string, unknown>): number {
  let count = 0;
  for (const key of Object.keys(value)) if (value[key] !== undefined) count++;
  return count;
}

/**
 * True when two values have the same JSON text apart from the order of object keys; `undefined` members count as
 * absent.
 */
export function equalJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => equalJson(item, b[i]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  let count = 0;
  for (const key of Object.keys(a)) {
    if (a[key] === undefined) continue;
    if (!Object.hasOwn(b, key) || !equalJson(a[key], b[key])) return false;
    count++;
  }
  return count === definedKeys(b);
}
