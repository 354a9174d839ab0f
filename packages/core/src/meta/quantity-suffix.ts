/** Family of suffixes: `k M G`, `Ki Mi Gi`, or `e3 e6 e9`. */
export type QuantityFormat = 'decimal' | 'binary' | 'exponent';

/** Suffix by power of ten. */
export const decimalSuffixes: ReadonlyMap<number, string> = new Map([
  [-9, 'n'],
  [-6, 'u'],
  [-3, 'm'],
  [0, ''],
  [3, 'k'],
  [6, 'M'],
  [9, 'G'],
  [12, 'T'],
  [15, 'P'],
  [18, 'E'],
]);

/** Suffix by power of two. */
export const binarySuffixes: ReadonlyMap<number, string> = new Map([
  [0, ''],
  [10, 'Ki'],
  [20, 'Mi'],
  [30, 'Gi'],
  [40, 'Ti'],
  [50, 'Pi'],
  [60, 'Ei'],
]);

interface Suffix {
  readonly format: QuantityFormat;
  /** The multiplier is 2^`exponent` for `binary`, otherwise 10^`exponent`. */
  readonly exponent: number;
}

const bySuffix = new Map<string, Suffix>([
  ...[...binarySuffixes].map(([exponent, text]): [string, Suffix] => [text, { format: 'binary', exponent }]),
  ...[...decimalSuffixes].map(([exponent, text]): [string, Suffix] => [text, { format: 'decimal', exponent }]),
]);

/** Exponents beyond this are rejected: no real amount needs them, and the arithmetic would become expensive. */
const maxExponent = 400;

/** What a suffix means; `undefined` for unknown ones. */
export function readSuffix(text: string): Suffix | undefined {
  const known = bySuffix.get(text);
  if (known) return known;
  if (!/^[eE][-+]?\d+$/.test(text)) return undefined;
  const exponent = Number(text.slice(1));
  return Math.abs(exponent) <= maxExponent ? { format: 'exponent', exponent } : undefined;
}
