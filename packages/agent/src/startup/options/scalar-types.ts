import { isIP } from 'node:net';
import { DurationError, durationMs, durationOfMs } from '@keelson/core';
import { parseBool } from '../../base/parse-bool.ts';
import { ValueError, type ValueType } from './value-type.ts';

export const bool: ValueType<boolean> = {
  name: 'bool',
  shape: 'bool',
  bare: 'true',
  parse(text) {
    const value = parseBool(text);
    if (value === undefined) throw new ValueError(`must be true or false, not ${JSON.stringify(text)}`);
    return value;
  },
  format: String,
};

/** Decimal, or with a base prefix: 0x, 0o, 0b, or a leading 0 for octal. */
const integerForm = /^([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[oO]?([0-7]+)|0[bB]([01]+)|(0|[1-9]\d*))$/;

function integer(name: string, min: bigint, max: bigint): ValueType<number> {
  return {
    name,
    shape: 'number',
    parse(text) {
      const [, sign = '', hex, octal, binary, decimal] = integerForm.exec(text.length > 80 ? '' : text) ?? [];
      const digits =
        hex !== undefined
          ? `0x${hex}`
          : octal !== undefined
            ? `0o${octal}`
            : binary !== undefined
              ? `0b${binary}`
              : decimal;
      if (digits === undefined) throw new ValueError(`must be a whole number, not ${JSON.stringify(text)}`);
      const value = sign === '-' ? -BigInt(digits) : BigInt(digits);
      if (value < min || value > max) throw new ValueError(`must be between ${min} and ${max}, not ${text}`);
      return Number(value);
    },
    format: String,
  };
}

export const int32: ValueType<number> = integer('int32', -(2n ** 31n), 2n ** 31n - 1n);
/** A 64-bit integer, limited to the range in which JavaScript numbers are exact. */
export const int: ValueType<number> = integer('int', BigInt(Number.MIN_SAFE_INTEGER), BigInt(Number.MAX_SAFE_INTEGER));

export const float: ValueType<number> = {
  name: 'float',
  shape: 'number',
  parse(text) {
    if (!/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text))
      throw new ValueError(`must be a number, not ${JSON.stringify(text)}`);
    return Number(text);
  },
  format: String,
};

export const text: ValueType<string> = {
  name: 'string',
  shape: 'text',
  parse: (given) => given,
  format: (value) => value,
};

export const ip: ValueType<string> = {
  name: 'ip',
  shape: 'text',
  parse(given) {
    const trimmed = given.trim();
    if (isIP(trimmed) === 0) throw new ValueError(`must be an IP address, not ${JSON.stringify(given)}`);
    return trimmed;
  },
  format: (value) => value,
};

/** A duration in milliseconds. */
export const duration: ValueType<number> = {
  name: 'duration',
  shape: 'text',
  parse(given) {
    try {
      return durationMs(given);
    } catch (error) {
      if (error instanceof DurationError)
        throw new ValueError(`must be a duration such as 10s or 1h30m: ${error.message}`);
      throw error;
    }
  },
  format: durationOfMs,
};

/** The output that `--version` requests. */
export type VersionRequest = 'none' | 'line' | 'raw';

export const version: ValueType<VersionRequest> = {
  name: 'version[=true]',
  shape: 'text',
  bare: 'true',
  parse(given) {
    if (given === 'raw') return 'raw';
    const value = parseBool(given);
    if (value === undefined) throw new ValueError(`must be true, false or raw, not ${JSON.stringify(given)}`);
    return value ? 'line' : 'none';
  },
  format: () => '',
};
