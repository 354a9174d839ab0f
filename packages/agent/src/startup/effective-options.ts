import type { AgentOptions } from './options/option-table.ts';
import { optionTable } from './options/option-table.ts';

/** Options whose values may contain credentials. */
const secretOptions = new Set(['manifest-url-header', 'manifest-url']);

/** Returns the effective value of every option for `/configz`; values that may contain credentials are not shown. */
export function effectiveOptions(
  values: AgentOptions,
  gates: Readonly<Record<string, boolean>>,
): Readonly<Record<string, unknown>> {
  const byName: Readonly<Record<string, unknown>> = values;
  const shown = optionTable.map(({ name, type }) => {
    const value = byName[name];
    if (name === 'feature-gates') return [name, gates];
    if (secretOptions.has(name)) return [name, type.format(value) === '' ? '' : '(set)'];
    return [
      name,
      value instanceof Map ? Object.fromEntries(value) : type.name === 'duration' ? type.format(value) : value,
    ];
  });
  return Object.fromEntries(shown);
}
