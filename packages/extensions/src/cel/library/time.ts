import { DurationError, parseInstant, parseDuration as parseNanos } from '@keelson/core';
import { Fault } from '../base/errors.ts';
import type { Functions } from '../base/functions.ts';
import * as t from '../base/types.ts';
import { Duration, Timestamp } from '../base/values.ts';

const second = 1_000_000_000n;

export function parseDuration(text: string): Duration | undefined {
  try {
    return new Duration(parseNanos(text));
  } catch (error) {
    if (error instanceof DurationError) return undefined;
    throw error;
  }
}

export function parseTimestamp(text: string): Timestamp | undefined {
  const instant = parseInstant(text);
  if (instant === undefined || instant.seconds < -62135596800) return undefined;
  return new Timestamp(BigInt(instant.seconds) * second + BigInt(instant.nanos));
}

/** The text of a duration as in `string(duration)`: seconds with a fraction. */
export function goDuration(nanos: bigint): string {
  return `${String(Number(nanos) / 1e9)}s`;
}

/** The text of a timestamp in RFC 3339, with only as many fractional digits as needed. */
export function formatTimestamp(nanos: bigint): string {
  const fraction = ((nanos % second) + second) % second;
  const whole = new Date(Number((nanos - fraction) / second) * 1000).toISOString().slice(0, 19);
  const digits = String(fraction).padStart(9, '0').replace(/0+$/, '');
  return `${whole}${digits === '' ? '' : `.${digits}`}Z`;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function zoneFormat(zone: string): Intl.DateTimeFormat | undefined {
  let format = formats.get(zone);
  if (format === undefined) {
    try {
      format = new Intl.DateTimeFormat('en-US', {
        timeZone: zone,
        ...{ year: 'numeric', month: 'numeric', day: 'numeric', era: 'short' },
        ...{ hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' },
      });
    } catch {
      return undefined;
    }
    if (formats.size >= 64) formats.clear();
    formats.set(zone, format);
  }
  return format;
}

/**
 * The local time in a time zone, as the UTC fields of a date. `zone` is a name of the zone database or an offset such
 * as `-08:00`.
 */
function localDate({ nanos }: Timestamp, zone: string): Date | Fault {
  const fraction = ((nanos % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const ms = Number((nanos - fraction) / 1_000_000n);
  if (zone === 'UTC' || zone === '') return new Date(ms);
  const offset = /^([+-]?)(\d{1,2}):(\d{2})$/.exec(zone);
  if (offset) {
    const minutes = Number(offset[2]) * 60 + Number(offset[3]);
    return new Date(ms + (offset[1] === '-' ? -minutes : minutes) * 60_000);
  }
  const format = zoneFormat(zone);
  if (format === undefined || zone.length > 64) return new Fault(`unknown time zone ${zone}`);
  const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, value]));
  const field = (name: Intl.DateTimeFormatPartTypes): number => Number(parts.get(name));
  const local = new Date(0);
  local.setUTCFullYear(field('year'), field('month') - 1, field('day'));
  local.setUTCHours(field('hour'), field('minute'), field('second'), ((ms % 1000) + 1000) % 1000);
  return local;
}

function dayOfYear(date: Date): number {
  const start = new Date(date.getTime());
  start.setUTCMonth(0, 1);
  return Math.round((date.getTime() - start.getTime()) / 86_400_000);
}

const parts: Record<string, (date: Date) => number> = {
  getFullYear: (date) => date.getUTCFullYear(),
  getMonth: (date) => date.getUTCMonth(),
  getDayOfYear: dayOfYear,
  getDayOfMonth: (date) => date.getUTCDate() - 1,
  getDate: (date) => date.getUTCDate(),
  getDayOfWeek: (date) => date.getUTCDay(),
  getHours: (date) => date.getUTCHours(),
  getMinutes: (date) => date.getUTCMinutes(),
  getSeconds: (date) => date.getUTCSeconds(),
  getMilliseconds: (date) => date.getUTCMilliseconds(),
};

const durationParts: Record<string, (nanos: bigint) => bigint> = {
  getHours: (nanos) => nanos / (3600n * second),
  getMinutes: (nanos) => nanos / (60n * second),
  getSeconds: (nanos) => nanos / second,
  getMilliseconds: (nanos) => nanos / 1_000_000n,
};

/** Adds functions for the parts of timestamps and durations. */
export function addTime(fns: Functions): void {
  for (const [name, read] of Object.entries(parts)) {
    const call = (time: Timestamp, zone = 'UTC'): bigint | Fault => {
      const date = localDate(time, zone);
      return date instanceof Fault ? date : BigInt(read(date));
    };
    fns.member(name, [t.timestampType], t.intType, (time: Timestamp) => call(time));
    fns.member(name, [t.timestampType, t.stringType], t.intType, call);
  }
  for (const [name, read] of Object.entries(durationParts)) {
    fns.member(name, [t.durationType], t.intType, ({ nanos }: Duration) => read(nanos));
  }
}
