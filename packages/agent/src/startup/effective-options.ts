import type { AgentOptions } from './options/option-table.ts';
import { optionTable } from './options/option-table.ts';

/** Headers of manifest requests are often credentials. */
const secret = new Set(['manifest-url-header', 'manifest-url']);

/** Every option as it is in effect, for `/configz`; what may be a credential is not shown. */
export function effectiveOptions(
  values: AgentOptions,
  gates: Readonly<Record<string, boolean>>,
): Readonly<Record<string, unknown>> {
  const byName: Readonly<Record<string, unknown>> = values;
  const shown = optionTable.map(({ name, type }) => {
    const value = byName[name];
    if (name === 'feature-gates') return [name, gates];
    if (secret.has(name)) return [name, type.format(value) === '' ? '' : '(set)'];
    return [
      name,
      value instanceof Map ? Object.fromEntries(value) : type.name === 'duration' ? type.format(value) : value,
    ];
  });
  return Object.fromEntries(shown);
}
