import { ruleText } from './names.ts';

const percentSource = '[0-9]+%';
const percent = new RegExp(`^${percentSource}$`);

/** The number before the sign of `25%`; `undefined` when the text is no percentage. */
export function percentOf(text: string): number | undefined {
  return percent.test(text) ? Number(text.slice(0, -1)) : undefined;
}

/** Violations of the rule for percentages. */
export function percentErrors(text: string): string[] {
  if (percent.test(text)) return [];
  return [
    ruleText("a valid percent string must be a numeric string followed by an ending '%'", ['1%', '93%'], percentSource),
  ];
}

/**
 * A count that is given as a number or as a percentage of `total`. `undefined` when the text is no percentage.
 *
 * @param round where a percentage that falls between two counts goes.
 */
export function resolveIntOrPercent(value: number | string, total: number, round: 'up' | 'down'): number | undefined {
  if (typeof value === 'number') return value;
  const share = percentOf(value);
  if (share === undefined) return undefined;
  const exact = (share * total) / 100;
  return round === 'up' ? Math.ceil(exact) : Math.floor(exact);
}
