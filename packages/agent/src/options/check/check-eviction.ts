import { DurationError, durationMs, parseQuantity, QuantityError } from '@keelson/core';
import type { Check } from './check.ts';
import { noNegativePeriod } from './check.ts';

const signals = ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree'];

/** Why a text is no threshold, or undefined: a positive quantity, or a share of the capacity such as 15%. */
function amountProblem(text: string): string | undefined {
  const percent = /^(\d+(?:\.\d+)?)%$/.exec(text)?.[1];
  if (percent !== undefined)
    return Number(percent) > 0 && Number(percent) <= 100 ? undefined : 'must be above 0% and at most 100%';
  try {
    return parseQuantity(text).unscaled > 0n ? undefined : 'must be above 0';
  } catch (error) {
    if (error instanceof QuantityError) return 'must be a quantity or a percentage';
    throw error;
  }
}

function amounts(name: 'eviction-hard' | 'eviction-soft' | 'eviction-minimum-reclaim'): Check {
  return function* ({ values }) {
    for (const [signal, text] of values[name]) {
      if (!signals.includes(signal)) yield unknownSignal(name, signal);
      const problem = amountProblem(text);
      if (problem !== undefined) yield `--${name}: ${signal} ${problem}, not ${JSON.stringify(text)}`;
    }
  };
}

function unknownSignal(name: string, signal: string): string {
  return `--${name}: unknown eviction signal ${JSON.stringify(signal)}; known: ${signals.join(', ')}`;
}

function* gracePeriods({ values }: Parameters<Check>[0]): Iterable<string> {
  const periods = values['eviction-soft-grace-period'];
  for (const [signal, text] of periods) {
    if (!signals.includes(signal)) yield unknownSignal('eviction-soft-grace-period', signal);
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
  amounts('eviction-hard'),
  amounts('eviction-soft'),
  amounts('eviction-minimum-reclaim'),
  gracePeriods,
  noNegativePeriod('eviction-pressure-transition-period'),
];
