/** Text that is no duration; `message` says why. */
export class DurationError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'DurationError';
  }
}

const second = 1_000_000_000n;
const unitNanos: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1000n],
  ['\u00b5s', 1000n],
  ['\u03bcs', 1000n],
  ['ms', 1_000_000n],
  ['s', second],
  ['m', 60n * second],
  ['h', 3600n * second],
]);
/** Longer texts are rejected before they are parsed. */
const maxLength = 128;
const maxNanos = 2n ** 63n - 1n;

function partNanos(text: string, whole: string, fraction: string, unitName: string): bigint {
  if (whole === '' && fraction === '') throw new DurationError(`invalid duration ${JSON.stringify(text)}`);
  if (unitName === '') throw new DurationError(`missing unit in duration ${JSON.stringify(text)}`);
  const unit = unitNanos.get(unitName);
  if (unit === undefined) {
    throw new DurationError(`unknown unit ${JSON.stringify(unitName)} in duration ${JSON.stringify(text)}`);
  }
  return BigInt(whole || '0') * unit + (BigInt(fraction || '0') * unit) / 10n ** BigInt(fraction.length);
}

/**
 * Reads a Go duration such as `1h30m`, `-1.5s`, `300ms` or `0`, in nanoseconds.
 *
 * @throws DurationError when the text is none, or does not fit 64 bits.
 */
export function parseDuration(text: string): bigint {
  if (text.length > maxLength) throw new DurationError('invalid duration: the text is too long');
  const negative = text.startsWith('-');
  const body = negative || text.startsWith('+') ? text.slice(1) : text;
  if (body === '0') return 0n;
  if (body === '') throw new DurationError(`invalid duration ${JSON.stringify(text)}`);
  const part = /(\d*)(?:\.(\d*))?([^\d.]*)/y;
  let nanos = 0n;
  while (part.lastIndex < body.length) {
    const [, whole = '', fraction = '', unit = ''] = part.exec(body) ?? [];
    nanos += partNanos(text, whole, fraction, unit);
  }
  if (nanos > maxNanos) throw new DurationError(`invalid duration ${JSON.stringify(text)}`);
  return negative ? -nanos : nanos;
}

/** A Go duration in milliseconds, with the fraction that a double can hold. Throws as {@link parseDuration} does. */
export function durationMs(text: string): number {
  return Number(parseDuration(text)) / 1_000_000;
}

function decimal(nanos: bigint, unit: bigint): string {
  const digits = String(unit).length - 1;
  const fraction = String(nanos % unit)
    .padStart(digits, '0')
    .replace(/0+$/, '');
  return `${nanos / unit}${fraction === '' ? '' : `.${fraction}`}`;
}

/** Nanoseconds as Go writes them: `1h0m0s`, `1.5s`, `250ms`, `0s`. */
export function formatDuration(nanos: bigint): string {
  if (nanos < 0n) return `-${formatDuration(-nanos)}`;
  if (nanos === 0n) return '0s';
  if (nanos < 1000n) return `${nanos}ns`;
  if (nanos < 1_000_000n) return `${decimal(nanos, 1000n)}\u00b5s`;
  if (nanos < second) return `${decimal(nanos, 1_000_000n)}ms`;
  const minutes = nanos / (60n * second);
  const seconds = `${decimal(nanos % (60n * second), second)}s`;
  if (minutes === 0n) return seconds;
  return minutes < 60n ? `${minutes}m${seconds}` : `${minutes / 60n}h${minutes % 60n}m${seconds}`;
}

/** Milliseconds as a Go duration. */
export function durationOfMs(ms: number): string {
  return formatDuration(BigInt(Math.round(ms * 1_000_000)));
}
