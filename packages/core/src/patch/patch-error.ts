/**
 * Why a patch was not applied.
 *
 * - `malformed`: it is not a patch of its type; HTTP 400.
 * - `unprocessable`: it is one, but does not fit the document; HTTP 422.
 * - `tooLarge`: it requires more work than one request may cause; HTTP 413.
 */
export type PatchErrorKind = 'malformed' | 'unprocessable' | 'tooLarge';

const brand = Symbol.for('keelson.PatchError');

/** A patch that was refused. The document is as it was. Messages name places, never values, which may be secret. */
export class PatchError extends Error {
  readonly kind: PatchErrorKind;
  readonly [brand] = true;

  constructor(kind: PatchErrorKind, message: string) {
    super(message);
    this.name = 'PatchError';
    this.kind = kind;
  }
}

/** True for a {@link PatchError} (of the given kind, if one is given), also across two copies of this package. */
export function isPatchError(error: unknown, kind?: PatchErrorKind): error is PatchError {
  return (
    typeof error === 'object' &&
    error !== null &&
    brand in error &&
    (kind === undefined || (error as PatchError).kind === kind)
  );
}
