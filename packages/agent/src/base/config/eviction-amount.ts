import { formatQuantity, parseQuantity, QuantityError, quantityValue } from '@keelson/core';

/** A number of bytes or inodes, or a share of the capacity (0..1). */
export type Amount = { readonly count: number } | { readonly share: number };

/** The text is not an amount; the message states the expected form. */
export class AmountError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'AmountError';
  }
}

/**
 * Parses a quantity, or a percentage such as 7.5%.
 *
 * @throws AmountError when it is neither, negative, or more than 100%
 */
export function parseAmount(text: string): Amount {
  const percent = /^([+-]?\d+(?:\.\d+)?)%$/.exec(text)?.[1];
  if (percent !== undefined) {
    const value = Number(percent);
    if (value < 0 || value > 100) throw new AmountError('must be between 0% and 100%');
    return { share: value / 100 };
  }
  try {
    if (parseQuantity(text).unscaled < 0n) throw new AmountError('must not be negative');
    return { count: Number(quantityValue(text)) };
  } catch (error) {
    if (error instanceof QuantityError) throw new AmountError('must be a quantity or a percentage');
    throw error;
  }
}

/** Parses the amount of a threshold, which must be above 0. @throws AmountError */
export function parseThresholdAmount(text: string): Amount {
  const amount = parseAmount(text);
  if ('share' in amount && amount.share === 0) throw new AmountError('must be above 0%');
  if ('count' in amount && amount.count === 0) throw new AmountError('must be above 0');
  return amount;
}

/** The amount in bytes or inodes for a resource of this capacity. */
export function amountOf(amount: Amount, capacity: number): number {
  return 'count' in amount ? amount.count : Math.floor(capacity * amount.share);
}

/** Formats an amount for people: bytes in Ki, Mi ..., inodes as a number. */
export function amountText(count: number, inodes: boolean): string {
  return formatQuantity({ unscaled: BigInt(Math.round(count)), exponent: 0, format: inodes ? 'decimal' : 'binary' });
}
