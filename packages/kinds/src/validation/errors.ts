import { type FieldError, isFull } from '@keelson/core';

export { isFull };

/** Collects the errors of one object. A shared collection avoids an array for each nested message. */
export type Errors = FieldError[];

function pushBounded(this: Errors, ...errors: FieldError[]): number {
  for (const error of errors) if (!isFull(this)) this[this.length] = error;
  return this.length;
}

/**
 * An empty collection that discards errors once it is full. It is an array with its own `push`, because the
 * construction of a subclass of Array costs a microsecond, and nearly all objects have no errors.
 */
export function newErrors(): Errors {
  const errors: Errors = [];
  errors.push = pushBounded;
  return errors;
}
