import { DurationError, durationMs } from '@keelson/core';
import { didYouMeanOneOf } from '@keelson/core/internal';
import { AmountError, parseAmount, parseThresholdAmount } from '../../base/config/eviction-amount.ts';
import { isSignal, signals } from '../../base/config/eviction-signals.ts';
import type { Check } from './option-checks.ts';
import { noNegativePeriod } from './option-checks.ts';

/** The reason why a text is not an amount; undefined when it is one. */
function problemOf(parse: (text: string) => unknown, text: string): string | undefined {
  try {
    parse(text);
    return undefined;
  } catch (error) {
    if (error instanceof AmountError) return error.message;
    throw error;
  }
}

function amounts(
  name: 'eviction-hard' | 'eviction-soft' | 'eviction-minimum-reclaim',
  parse: (text: string) => unknown,
): Check {
  return function* ({ values }) {
    for (const [signal, text] of values[name]) {
      if (!isSignal(signal)) yield unknownSignal(name, signal);
      const problem = problemOf(parse, text);
      if (problem !== undefined) yield `--${name}: ${signal} ${problem}, not ${JSON.stringify(text)}`;
    }
  };
}

function unknownSignal(name: string, signal: string): string {
  return `--${name}: unknown eviction signal ${JSON.stringify(signal)}${didYouMeanOneOf(signal, signals)}`;
}

function* gracePeriods({ values }: Parameters<Check>[0]): Iterable<string> {
  const periods = values['eviction-soft-grace-period'];
  for (const [signal, text] of periods) {
    if (!isSignal(signal)) yield unknownSignal('eviction-soft-grace-period', signal);
    if (!isPositive(text))
      yield `--eviction-soft-grace-period: ${signal} must be a duration above 0, not ${JSON.stringify(text)}`;
  }
  for (const signal of values['eviction-soft'].keys()) {
    if (!periods.has(signal)) yield `--eviction-soft: ${signal} needs a period in --eviction-soft-grace-period`;
  }
}

function isPositive(text: string): boolean {
  try {
    return durationMs(text) > 0;
  } catch (error) {
    if (error instanceof DurationError) return false;
    throw error;
  }
}

export const evictionChecks: readonly Check[] = [
  amounts('eviction-hard', parseThresholdAmount),
  amounts('eviction-soft', parseThresholdAmount),
  amounts('eviction-minimum-reclaim', parseAmount),
  gracePeriods,
  noNegativePeriod('eviction-pressure-transition-period'),
];
