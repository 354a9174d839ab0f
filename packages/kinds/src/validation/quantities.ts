import { compareQuantities, QuantityError, quantityMilliValue } from '@keelson/core';

/**
 * Order of two amounts; `undefined` when they differ and one of them is not a quantity, which the decoder has already
 * rejected.
 */
export function compareAmounts(a: string, b: string): number | undefined {
  return a === b ? 0 : unlessMalformed(() => compareQuantities(a, b));
}

/** True for negative amounts. */
export function isNegativeAmount(amount: string): boolean {
  return amount.startsWith('-') && (compareAmounts(amount, '0') ?? 0) < 0;
}

/** Most amounts: digits with or without a multiple. */
const plainAmount = /^\d+(?:[kMGTPE]|[KMGTPE]i)?$/;

/** True for amounts without a fraction. */
export function isWholeQuantity(amount: string): boolean {
  return plainAmount.test(amount) || (unlessMalformed(() => quantityMilliValue(amount) % 1000n === 0n) ?? true);
}

/** The result of a calculation, or undefined when a text is no quantity. */
export function unlessMalformed<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof QuantityError) return undefined;
    throw error;
  }
}
