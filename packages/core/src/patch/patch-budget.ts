/**
 * Steps that applying one patch may take. A step is about 50 ns: one field copied or compared. A patch of the largest
 * size applied to the largest object takes fewer, as long as it touches each part only a few times.
 */
const maxSteps = 2_000_000;

/** Objects with more keys are hash tables, and each of their keys costs several times as much. */
const mostShapedKeys = 128;
const stepsPerHashedKey = 10;

/** Steps for one element of lists whose order is determined by ranks. */
const stepsPerRank = 4;

/** List elements that are moved in one step. */
const movedPerStep = 64;

/**
 * What remains of the work that one patch may cause. A short instruction can act on a long list or a large map, so the
 * work is limited apart from the size of the patch.
 */
export class PatchBudget {
  #left = maxSteps;

  /** @throws PatchError `tooLarge` when the patch takes more steps than allowed. */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0)
      throw new PatchError('tooLarge', 'applying the patch takes more work than one request may cause');
  }

  /** As {@link spend}, for the keys of an object that is copied or compared. */
  spendOnKeys(keys: number): void {
    this.spend(keys > mostShapedKeys ? keys * stepsPerHashedKey : keys);
  }

  /** As {@link spend}, for elements of lists whose order is determined by ranks. */
  spendOnRanks(elements: number): void {
    this.spend(elements * stepsPerRank);
  }

  /** As {@link spend}, for elements that an insertion or removal moves. */
  spendOnMoves(elements: number): void {
    this.spend(1 + Math.trunc(elements / movedPerStep));
  }
}

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
