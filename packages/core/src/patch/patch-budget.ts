import { PatchError } from './patch-error.ts';

/**
 * Steps that applying one patch may take. A step is about 50 ns: one field copied or compared. A patch of the largest
 * size applied to the largest object takes a tenth of them, as long as it touches each part only a few times.
 */
const maxSteps = 2_000_000;

/** Objects with more keys are hash tables, and each of their keys costs several times as much. */
const mostShapedKeys = 128;
const stepsPerHashedKey = 10;

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

  /** As {@link spend}, for elements that an insertion or removal moves. */
  spendOnMoves(elements: number): void {
    this.spend(1 + Math.trunc(elements / movedPerStep));
  }
}
