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
