import { type FieldError, isFull } from '@keelson/core';

export { isFull };

/** Where checks of one object collect what they refuse. Collecting spares an array per nested message. */
export type Errors = FieldError[];

function pushBounded(this: Errors, ...errors: FieldError[]): number {
  for (const error of errors) if (!isFull(this)) this[this.length] = error;
  return this.length;
}

/**
 * An empty collection that keeps errors until it is full. A plain array with a `push` of its own: a subclass of Array
 * costs a microsecond to construct, and nearly every object has no errors at all.
 */
export function newErrors(): Errors {
  const errors: Errors = [];
  errors.push = pushBounded;
  return errors;
}
