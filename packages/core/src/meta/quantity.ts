import { binarySuffixes, decimalSuffixes, type QuantityFormat, readSuffix } from './quantity-suffix.ts';

/** Text that is no quantity; `message` says why. */
export class QuantityError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'QuantityError';
  }
}

/** An exact amount: `unscaled` x 10^`exponent`, and the family of suffixes it was written with. */
export interface Quantity {
  readonly unscaled: bigint;
  /** At least -9: a billionth is the smallest unit. */
  readonly exponent: number;
  readonly format: QuantityFormat;
}

/** Longer texts are rejected before they are parsed; the limit also bounds the arithmetic. */
const maxLength = 128;
const form = /^([+-]?)(\d*)(?:\.(\d*))?([eEinumkKMGTP]*(?:[-+]?\d+)?)$/;
const finest = -9;
/** Maximum of an amount with a binary suffix, as in Kubernetes. */
const maxBinary = 2n ** 63n - 1n;

function power10(exponent: number): bigint {
  return 10n ** BigInt(exponent);
}

function divideAwayFromZero(value: bigint, by: bigint): bigint {
  const quotient = value / by;
  if (value % by === 0n) return quotient;
  return value < 0n ? quotient - 1n : quotient + 1n;
}

/** The amount as a whole number of 10^`exponent`; what does not divide is rounded away from zero. */
function scaledTo(quantity: Quantity, exponent: number): bigint {
  const shift = quantity.exponent - exponent;
  if (shift >= 0) return quantity.unscaled * power10(shift);
  return divideAwayFromZero(quantity.unscaled, power10(-shift));
}

/** Rounds to billionths, away from zero, so that an amount above zero never becomes zero. */
function limited(quantity: Quantity): Quantity {
  const { format } = quantity;
  const atFinest =
    quantity.exponent < finest ? { unscaled: scaledTo(quantity, finest), exponent: finest, format } : quantity;
  if (format !== 'binary') return atFinest;
  const whole = scaledTo(atFinest, 0);
  if (whole > maxBinary) return { unscaled: maxBinary, exponent: 0, format };
  return whole < -maxBinary ? { unscaled: -maxBinary, exponent: 0, format } : atFinest;
}

function compare(a: Quantity, b: Quantity): number {
  // Signs settle most comparisons, which are with zero, without arithmetic on big numbers.
  if (b.unscaled === 0n || a.unscaled < 0n !== b.unscaled < 0n) return order(a.unscaled, b.unscaled);
  const exponent = Math.min(a.exponent, b.exponent);
  const left = scaledTo(a, exponent);
  const right = scaledTo(b, exponent);
  return order(left, right);
}

function order(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * A cache of parsed texts; clusters use few different ones. It is emptied when it is full, so that clients cannot make
 * it grow.
 */
const known = new Map<string, Quantity>();
const maxKnown = 1024;

/**
 * Reads a quantity such as `500m`, `1.5Gi`, `12e6` or `-3`.
 *
 * @throws QuantityError when the text is none.
 */
export function parseQuantity(text: string): Quantity {
  let quantity = known.get(text);
  if (quantity === undefined) {
    quantity = readQuantity(text);
    if (known.size >= maxKnown) known.clear();
    known.set(text, quantity);
  }
  return quantity;
}

function readQuantity(text: string): Quantity {
  const parts = text.length <= maxLength ? form.exec(text) : null;
  const [, sign = '', whole = '', fraction = '', suffixText = ''] = parts ?? [];
  if (!parts || (whole === '' && fraction === '')) {
    throw new QuantityError(
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    );
  }
  const suffix = readSuffix(suffixText);
  if (!suffix) throw new QuantityError("unable to parse quantity's suffix");
  const digits = BigInt(whole + fraction);
  const signed = sign === '-' ? -digits : digits;
  return limited({
    unscaled: suffix.format === 'binary' ? signed * 2n ** BigInt(suffix.exponent) : signed,
    exponent: (suffix.format === 'binary' ? 0 : suffix.exponent) - fraction.length,
    format: suffix.format,
  });
}

function formatBinary(value: bigint): string {
  let step = 0;
  while (step < 60 && value % 1024n === 0n) {
    value /= 1024n;
    step += 10;
  }
  return `${value}${binarySuffixes.get(step) ?? ''}`;
}

function formatDecimal(quantity: Quantity): string {
  let { unscaled, exponent } = quantity;
  while (unscaled % 10n === 0n) {
    unscaled /= 10n;
    exponent += 1;
  }
  const top = quantity.format === 'exponent' ? exponent : Math.min(exponent, 18);
  const target = Math.floor(top / 3) * 3;
  unscaled *= power10(exponent - target);
  if (quantity.format !== 'exponent') return `${unscaled}${decimalSuffixes.get(target) ?? ''}`;
  return target === 0 ? `${unscaled}` : `${unscaled}e${target}`;
}

/**
 * The canonical text: a whole number with the largest suffix that keeps it whole. Binary amounts under 1024 and
 * those with a fraction are written with decimal suffixes.
 */
export function formatQuantity(quantity: Quantity): string {
  const { unscaled, format } = quantity;
  if (unscaled === 0n) return '0';
  if (format === 'binary') {
    const value = scaledTo(quantity, 0);
    const whole = quantity.exponent >= 0 || value * power10(-quantity.exponent) === unscaled;
    if (whole && (value >= 1024n || value <= -1024n)) return formatBinary(value);
    return formatDecimal({ ...quantity, format: 'decimal' });
  }
  return formatDecimal(quantity);
}

/**
 * A cache of canonical texts; clusters use few different ones. It is emptied when it is full, so that clients cannot
 * make it grow.
 */
const canonicalTexts = new Map<string, string>();
const maxCanonicalTexts = 1024;

/** The canonical text of a quantity: `0.5` -> `500m`, `1024Ki` -> `1Mi`. Throws as {@link parseQuantity} does. */
export function canonicalQuantity(text: string): string {
  const known = canonicalTexts.get(text);
  if (known !== undefined) return known;
  const canonical = formatQuantity(parseQuantity(text));
  if (canonicalTexts.size >= maxCanonicalTexts) canonicalTexts.clear();
  canonicalTexts.set(text, canonical);
  return canonical;
}

/** Negative when `a` is less than `b`, 0 when both are the same amount. Exact. Throws as {@link parseQuantity} does. */
export function compareQuantities(a: string, b: string): number {
  return compare(parseQuantity(a), parseQuantity(b));
}

/** The amount in whole units, rounded away from zero. Throws as {@link parseQuantity} does. */
export function quantityValue(text: string): bigint {
  return scaledTo(parseQuantity(text), 0);
}

/** The amount in thousandths, rounded away from zero. Throws as {@link parseQuantity} does. */
export function quantityMilliValue(text: string): bigint {
  return scaledTo(parseQuantity(text), -3);
}

/** Sum of two quantities in canonical text, with the suffixes of the first (of the second if the first is zero). */
export function addQuantities(a: string, b: string): string {
  const left = parseQuantity(a);
  const right = parseQuantity(b);
  const exponent = Math.min(left.exponent, right.exponent);
  return formatQuantity({
    unscaled: scaledTo(left, exponent) + scaledTo(right, exponent),
    exponent,
    format: left.unscaled === 0n ? right.format : left.format,
  });
}
