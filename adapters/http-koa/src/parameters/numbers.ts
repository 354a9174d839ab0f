import { DurationError, durationMs, type QueryParameters, statusErrors } from '@keelson/core';

/** A base-10 integer within 64 bits; undefined when not sent or empty, 400 for anything else. */
export function integerParameter(query: QueryParameters, name: string): number | undefined {
  const text = query.first(name);
  if (text === undefined || text === '') return undefined;
  const value = /^[+-]?\d{1,19}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(value)) {
    throw statusErrors.badRequest(
      `invalid value ${JSON.stringify(text)} for query parameter ${name}: expected a base-10 integer`,
    );
  }
  return value;
}

/**
 * An integer of 32 bits, as the specification types it; undefined when not sent or sent empty. 400 for anything else.
 */
export function int32Parameter(query: QueryParameters, name: string): number | undefined {
  const value = integerParameter(query, name);
  if (value !== undefined && value !== (value | 0)) {
    throw statusErrors.badRequest(
      `invalid value ${JSON.stringify(query.first(name))} for query parameter ${name}: expected an integer of 32 bits`,
    );
  }
  return value;
}

/**
 * The `timeout` parameter: how long the client wants to wait for any answer, at most the server's own bound. Undefined
 * when not sent; 400 when it is no duration or not positive.
 */
export function timeoutParameter(query: QueryParameters): number | undefined {
  const text = query.first('timeout');
  if (text === undefined || text === '') return undefined;
  const value = readDuration(text);
  if (value === undefined || value < 0) throw statusErrors.badRequest('invalid timeout specified in the request URL');
  return value === 0 ? undefined : value;
}

function readDuration(text: string): number | undefined {
  try {
    return durationMs(text);
  } catch (error) {
    if (error instanceof DurationError) return undefined;
    throw error;
  }
}
