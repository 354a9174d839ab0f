import type { GivenValues } from '@keelson/core/internal';
import { didYouMeanOneOf } from '@keelson/core/internal';
import type { AgentOptions, OptionName } from './option-table.ts';

/** The input of checks: the values, the names of the options that were given, and the gates. */
export interface CheckContext {
  readonly values: AgentOptions;
  readonly given: GivenValues;
  readonly gates: Readonly<Record<string, boolean>>;
}

/** Checks some options together; each problem is one sentence that names the option. */
export type Check = (context: CheckContext) => Iterable<string>;

/** Options whose values are numbers. */
type NumberOption = { [N in OptionName]: AgentOptions[N] extends number ? N : never }[OptionName];
type TextOption = { [N in OptionName]: AgentOptions[N] extends string ? N : never }[OptionName];
type WordsOption = { [N in OptionName]: AgentOptions[N] extends readonly string[] ? N : never }[OptionName];

/** The values of these options must be between two bounds, inclusive. */
export function between(min: number, max: number, ...names: readonly NumberOption[]): Check {
  return function* ({ values }) {
    for (const name of names) {
      const value = values[name];
      if (value < min || value > max) {
        yield max === Number.POSITIVE_INFINITY
          ? `--${name} must be at least ${min}, not ${value}`
          : `--${name} must be between ${min} and ${max}, not ${value}`;
      }
    }
  };
}

/** These periods must be longer than 0. */
export function positivePeriod(...names: readonly NumberOption[]): Check {
  return function* ({ values }) {
    for (const name of names) if (values[name] <= 0) yield `--${name} must be longer than 0`;
  };
}

/** These durations must not be negative. */
export function noNegativePeriod(...names: readonly NumberOption[]): Check {
  return function* ({ values }) {
    for (const name of names) if (values[name] < 0) yield `--${name} must not be negative`;
  };
}

/** The value of the option must be one of these words. */
export function oneOf(name: TextOption, ...words: readonly string[]): Check {
  return function* ({ values }) {
    if (!words.includes(values[name]))
      yield `--${name}: unsupported value ${JSON.stringify(values[name])}${didYouMeanOneOf(values[name], words)}`;
  };
}

/** Each item of these lists must be one of these words. */
export function eachOf(words: readonly string[], ...names: readonly WordsOption[]): Check {
  return function* ({ values }) {
    for (const name of names) {
      const wrong = values[name].find((word) => !words.includes(word));
      if (wrong !== undefined)
        yield `--${name}: unsupported value ${JSON.stringify(wrong)}${didYouMeanOneOf(wrong, words)}`;
    }
  };
}
