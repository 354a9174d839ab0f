import { labelKeyErrors, labelValueErrors } from './names.ts';
import { SelectorError } from './selector-error.ts';

/** Operators of requirements: those of the JSON form and the two that exist in texts only. */
export type LabelOperator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt';

/** Labels of an object. */
export type Labels = Readonly<Record<string, string>>;

/** One condition on one label. */
export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  /**
   * The values in sorted order, without duplicates. Empty for `Exists` and `DoesNotExist`, one number for `Gt` and
   * `Lt`.
   */
  readonly values: readonly string[];
}

const integer = /^[+-]?\d{1,19}$/;
const minInt64 = -(2n ** 63n);
const maxInt64 = 2n ** 63n - 1n;

function int64(text: string): bigint | undefined {
  if (!integer.test(text)) return undefined;
  const value = BigInt(text.startsWith('+') ? text.slice(1) : text);
  return value >= minInt64 && value <= maxInt64 ? value : undefined;
}

function checkValues(operator: LabelOperator, values: readonly string[]): string | undefined {
  switch (operator) {
    case 'In':
    case 'NotIn':
      return values.length === 0 ? "for 'in', 'notin' operators, values set can't be empty" : undefined;
    case 'Exists':
    case 'DoesNotExist':
      return values.length > 0 ? 'values set must be empty for exists and does not exist' : undefined;
    case 'Gt':
    case 'Lt':
      return values.length === 1 && int64(values[0] ?? '') !== undefined
        ? undefined
        : "for 'Gt', 'Lt' operators, the value must be an integer";
  }
}

/**
 * Makes a requirement out of its parts.
 *
 * @throws SelectorError when the key is no label key, a value no label value, or their number wrong for the operator.
 */
export function labelRequirement(key: string, operator: LabelOperator, given: readonly string[]): LabelRequirement {
  const [keyError] = labelKeyErrors(key);
  if (keyError !== undefined) throw new SelectorError(`key: Invalid value: ${JSON.stringify(key)}: ${keyError}`);
  const values = [...new Set(given)].sort();
  const problem = checkValues(operator, values);
  if (problem !== undefined) throw new SelectorError(`values: Invalid value: ${JSON.stringify(values)}: ${problem}`);
  for (const value of values) {
    const [error] = labelValueErrors(value);
    if (error !== undefined)
      throw new SelectorError(`values[0][${key}]: Invalid value: ${JSON.stringify(value)}: ${error}`);
  }
  return { key, operator, values };
}

/**
 * Binary search for a value among sorted ones. It runs for every object of a list, so its cost must hardly grow with
 * the number of values.
 */
function isAmong(sorted: readonly string[], value: string): boolean {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as string) < value) low = middle + 1;
    else high = middle;
  }
  return sorted[low] === value;
}

/** True when an object with these labels meets the requirement. */
export function meetsRequirement(requirement: LabelRequirement, labels: Labels): boolean {
  const { key, operator, values } = requirement;
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'In':
      return value !== undefined && isAmong(values, value);
    case 'NotIn':
      return value === undefined || !isAmong(values, value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
    case 'Lt': {
      const actual = value === undefined ? undefined : int64(value);
      const bound = int64(values[0] ?? '');
      if (actual === undefined || bound === undefined) return false;
      return operator === 'Gt' ? actual > bound : actual < bound;
    }
  }
}

/** The requirement as text that parses to the same requirement. */
export function formatRequirement({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case 'In':
      return values.length === 1 ? `${key}=${values[0]}` : `${key} in (${values.join(',')})`;
    case 'NotIn':
      return values.length === 1 ? `${key}!=${values[0]}` : `${key} notin (${values.join(',')})`;
    case 'Exists':
      return key;
    case 'DoesNotExist':
      return `!${key}`;
    case 'Gt':
      return `${key}>${values[0]}`;
    case 'Lt':
      return `${key}<${values[0]}`;
  }
}
