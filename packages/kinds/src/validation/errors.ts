import type { FieldError } from '@keelson/core';

/** Where checks of one object collect what they refuse. Collecting spares an array per nested message. */
export type Errors = FieldError[];

/**
 * Errors beyond these are dropped, as when decoding: a body within the size limit can be wrong in hundreds of thousands of
 * places, and its answer would be many times its size.
 */
const maxErrors = 100;

function pushBounded(this: Errors, ...errors: FieldError[]): number {
  for (const error of errors) if (this.length < maxErrors) this[this.length] = error;
  return this.length;
}

/**
 * An empty collection that keeps the first hundred errors. A plain array with a `push` of its own: a subclass of Array costs a microsecond to
 * construct, and nearly every object has no errors at all.
 */
export function newErrors(): Errors {
  const errors: Errors = [];
  errors.push = pushBounded;
  return errors;
}

/** True when further errors would be dropped: loops over data of the client may end. */
export function isFull(errors: Errors): boolean {
  return errors.length >= maxErrors;
}
