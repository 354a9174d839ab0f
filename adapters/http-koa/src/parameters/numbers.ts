import { type QueryParameters, statusErrors } from '@keelson/core';

/** A base-10 integer within 64 bits; undefined when not sent or sent empty. 400 for anything else (api-conventions 2.2). */
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

/** Go duration text such as `30s` or `1m30s` in milliseconds; undefined when it is none. */
export function durationMs(text: string): number | undefined {
  if (text === '0') return 0;
  if (!/^\+?(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h)(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))*$/.test(text))
    return undefined;
  const unitMs: Readonly<Record<string, number>> = {
    ns: 1e-6,
    us: 1e-3,
    µs: 1e-3,
    μs: 1e-3,
    ms: 1,
    s: 1000,
    m: 60_000,
    h: 3_600_000,
  };
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/([\d.]+)(ns|us|µs|μs|ms|s|m|h)/g))
    total += Number(amount) * (unitMs[unit ?? ''] ?? 0);
  return Number.isFinite(total) ? total : undefined;
}

/**
 * The `timeout` parameter: how long the client wants to wait for any answer, at most the server's own bound. Undefined when not
 * sent; 400 when it is no duration or not positive.
 */
export function timeoutParameter(query: QueryParameters): number | undefined {
  const text = query.first('timeout');
  if (text === undefined || text === '') return undefined;
  const value = durationMs(text);
  if (value === undefined || value < 0) throw statusErrors.badRequest('invalid timeout specified in the request URL');
  return value === 0 ? undefined : value;
}
