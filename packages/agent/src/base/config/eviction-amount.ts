import { formatQuantity, parseQuantity, QuantityError, quantityValue } from '@keelson/core';

/** So much, in bytes or inodes, or a share of what there is. */
export type Amount = { readonly count: number } | { readonly share: number };

/** A text that is no amount; the message says what it must be. */
export class AmountError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'AmountError';
  }
}

/**
 * Reads a quantity, or a percentage such as 7.5%.
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

/** Reads the amount of a threshold: what can never be fallen short of makes no sense. @throws AmountError */
export function parseThresholdAmount(text: string): Amount {
  const amount = parseAmount(text);
  if ('share' in amount && amount.share === 0) throw new AmountError('must be above 0%');
  if ('count' in amount && amount.count === 0) throw new AmountError('must be above 0');
  return amount;
}

/** The amount in bytes or inodes of a resource that has so much of them. */
export function amountOf(amount: Amount, capacity: number): number {
  return 'count' in amount ? amount.count : Math.floor(capacity * amount.share);
}

/** As people write it: bytes in Ki, Mi ..., inodes as a number. */
export function amountText(count: number, inodes: boolean): string {
  return formatQuantity({ unscaled: BigInt(Math.round(count)), exponent: 0, format: inodes ? 'decimal' : 'binary' });
}
