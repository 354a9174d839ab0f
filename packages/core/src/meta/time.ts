import type { MicroTime, Time } from './types.ts';

/** An instant as the protobuf form has it: whole seconds since 1970 and nanoseconds on top. */
export interface Instant {
  readonly seconds: number;
  readonly nanos: number;
}

const rfc3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))$/;
/** Longer texts are rejected without parsing; nine fractional digits are sufficient. */
const maxLength = 64;
const dayLengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
/** 0001-01-01T00:00:00Z, which Go servers take for "not set". */
const zeroSeconds = -62_135_596_800;
/** 9999-12-31T23:59:59Z: a year has four digits. */
const maxSeconds = 253_402_300_799;
/** 0000-01-01T00:00:00Z. */
const minSeconds = -62_167_219_200;

function daysIn(year: number, month: number): number {
  if (month === 2 && ((year % 4 === 0 && year % 100 !== 0) || year % 400 === 0)) return 29;
  return dayLengths[month - 1] ?? 0;
}

function validClock(hour: number, minute: number, second: number): boolean {
  return hour < 24 && minute < 60 && second < 60;
}

/** Reads an RFC 3339 instant with any offset and fraction; `undefined` when the text is none. */
export function parseInstant(text: string): Instant | undefined {
  const parts = text.length <= maxLength ? rfc3339.exec(text) : null;
  if (!parts) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHour = '0', offsetMinute = '0'] = parts;
  if (Number(day) < 1 || Number(day) > daysIn(Number(year), Number(month))) return undefined;
  if (!validClock(Number(hour), Number(minute), Number(second))) return undefined;
  if (!validClock(Number(offsetHour), Number(offsetMinute), 0)) return undefined;
  const local = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`) / 1000;
  const offset = (Number(offsetHour) * 60 + Number(offsetMinute)) * 60;
  const seconds = local - (sign === '-' ? -offset : offset);
  if (seconds < minSeconds || seconds > maxSeconds) return undefined;
  return { seconds, nanos: Number(fraction.padEnd(9, '0').slice(0, 9)) };
}

/** The instant in milliseconds since 1970, as `Date` counts; `undefined` when the text is no RFC 3339 instant. */
export function timeMs(text: string): number | undefined {
  const instant = parseInstant(text);
  return instant && instant.seconds * 1000 + Math.floor(instant.nanos / 1_000_000);
}

/** True for the instant that Go servers take for "not set". */
export function isZeroInstant(instant: Instant): boolean {
  return instant.seconds === zeroSeconds && instant.nanos === 0;
}

/** Whole-second UTC text of an instant. */
export function formatInstant(instant: Instant): Time {
  return `${new Date(instant.seconds * 1000).toISOString().slice(0, 19)}Z`;
}

/** UTC text of an instant with exactly six fractional digits; what is finer is dropped. */
export function formatMicroInstant(instant: Instant): MicroTime {
  const micros = Math.floor(instant.nanos / 1000);
  return `${new Date(instant.seconds * 1000).toISOString().slice(0, 19)}.${String(micros).padStart(6, '0')}Z`;
}

let lastSecond = Number.NaN;
let lastSecondText: Time = '';

/**
 * Whole-second UTC text of a date: `2006-01-02T15:04:05Z`. The last text is kept, because objects are often written in
 * the same second.
 */
export function formatTime(date: Date): Time {
  const second = Math.floor(date.getTime() / 1000);
  if (second !== lastSecond) {
    lastSecondText = `${date.toISOString().slice(0, 19)}Z`;
    lastSecond = second;
  }
  return lastSecondText;
}

/** UTC text of a date with six fractional digits. */
export function formatMicroTime(date: Date): MicroTime {
  return `${date.toISOString().slice(0, 23)}000Z`;
}
