import { formatQuantity, parseQuantity, quantityMilliValue, quantityValue } from '@keelson/core';
import type { ResourceAmounts } from '../contracts/agent-config.ts';
import type { Machine } from './machine.ts';

/** What the machine has. */
export function nodeCapacity(machine: Pick<Machine, 'cores' | 'memoryBytes'>, pods: number): Record<string, string> {
  return { cpu: String(machine.cores), memory: `${Math.floor(machine.memoryBytes / 1024)}Ki`, pods: String(pods) };
}

/** What is left for pods after everything that is set aside, never less than nothing. */
export function nodeAllocatable(capacity: ResourceAmounts, ...reserved: readonly ResourceAmounts[]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(capacity).map(([name, amount]) => {
      const taken = reserved.map((amounts) => amounts[name]).filter((text) => text !== undefined);
      return [name, taken.length === 0 ? amount : less(name, amount, taken)];
    }),
  );
}

function less(name: string, amount: string, taken: readonly string[]): string {
  if (name === 'cpu') {
    const left = taken.reduce((sum, text) => sum - quantityMilliValue(text), quantityMilliValue(amount));
    return formatQuantity({ unscaled: left < 0n ? 0n : left, exponent: -3, format: 'decimal' });
  }
  const left = taken.reduce((sum, text) => sum - quantityValue(text), quantityValue(amount));
  return formatQuantity({ unscaled: left < 0n ? 0n : left, exponent: 0, format: parseQuantity(amount).format });
}
