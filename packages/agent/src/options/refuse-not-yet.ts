import type { AnyOption } from './option.ts';
import { type AgentOptions, optionTable } from './option-table.ts';
import { UsageError } from './usage-error.ts';

/** Values whose text is the same mean the same; order in maps and lists counts, which errs on the side of refusing. */
function isHarmless(row: AnyOption, value: unknown): boolean {
  const text = row.type.format(value);
  return [row.default, ...(row.notYet?.harmless ?? [])].some((allowed) => row.type.format(allowed) === text);
}

/**
 * Options that no part of the agent obeys yet keep their default; anything else would be a wish that nobody hears.
 *
 * @throws UsageError
 */
export function refuseNotYet(values: AgentOptions): void {
  const byName: Readonly<Record<string, unknown>> = values;
  for (const row of optionTable) {
    if (row.notYet !== undefined && !isHarmless(row, byName[row.name])) {
      throw new UsageError(`--${row.name}=${row.type.format(byName[row.name])} is not yet supported; leave the option out`);
    }
  }
}
