import type { RuntimeCaseContext } from './case-context.ts';
import type { RuntimeRequirement } from './harness.ts';

/** One statement about every runtime. */
export interface RuntimeCase {
  /** Stable and unique, `group.what-holds`. */
  readonly id: string;
  /** The statement as a sentence. */
  readonly title: string;
  readonly requires?: readonly RuntimeRequirement[];
  /** Throws when the statement does not hold. */
  run(context: RuntimeCaseContext): Promise<void>;
}
