import { fieldError } from '@keelson/core';
import type { Errors } from '../validation/checks.ts';
import { checkNonNegative } from '../validation/checks.ts';

/** Rejects negative counts in a status. */
export function checkCounts<K extends string>(
  status: { readonly [P in K]?: number },
  fields: readonly K[],
  errors: Errors,
): void {
  for (const field of fields) checkNonNegative(status[field], `status.${field}`, errors);
}

/** Rejects a count that is greater than another one. `name` is the name of the other count in messages. */
export function checkNotAbove<P extends string, W extends string>(
  status: { readonly [F in P | W]?: number },
  part: P,
  whole: W,
  errors: Errors,
  name = `status.${whole}`,
): void {
  const value: number = status[part] ?? 0;
  if (value <= (status[whole] ?? 0)) return;
  errors.push(fieldError.invalid(`status.${part}`, value, `cannot be greater than ${name}`));
}
