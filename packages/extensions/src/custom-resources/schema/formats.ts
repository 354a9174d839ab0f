import { isIP, isIPv4, isIPv6 } from 'node:net';
import { canonicalBase64 } from '@keelson/core/internal';

type Check = (text: string) => boolean;

const matches =
  (pattern: RegExp): Check =>
  (text) =>
    pattern.test(text);

/** True for a valid calendar date, where a year has four digits. */
function isDate(text: string): boolean {
  const parts = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text);
  if (parts === null) return false;
  const [year, month, day] = parts.slice(1).map(Number) as [number, number, number];
  const last = [
    31,
    year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28,
    31,
    30,
    31,
    30,
    31,
    31,
    30,
    31,
    30,
    31,
  ];
  return month >= 1 && month <= 12 && day >= 1 && day <= (last[month - 1] ?? 0);
}

/** True for a `date-time` of RFC 3339, or one of the variants that the Go package strfmt accepts. */
function isDateTime(text: string): boolean {
  const parts = /^(\d{4}-\d\d-\d\d)[tT](\d\d):(\d\d):(\d\d)(\.\d+)?([zZ]|[+-]\d\d:?\d\d)?$/.exec(text);
  if (parts === null) return false;
  const [, date = '', hour, minute, second] = parts;
  return isDate(date) && Number(hour) < 24 && Number(minute) < 60 && Number(second) <= 60;
}

const durationUnit =
  'ns|nano|nanos|nanosecond|nanoseconds|us|µs|μs|micro|micros|microsecond|microseconds|ms|milli|millis|millisecond|' +
  'milliseconds|s|sec|secs|second|seconds|m|min|mins|minute|minutes|h|hr|hour|hours|d|day|days|w|wk|week|weeks';
const durationPattern = new RegExp(`^(?:0|[-+]?(?:(?:\\d+\\.?\\d*|\\.\\d+)\\s?(?:${durationUnit})\\s?)+)$`, 'u');

function isCidr(text: string): boolean {
  const [address = '', bits = '', ...rest] = text.split('/');
  const family = isIP(address);
  if (rest.length > 0 || family === 0 || !/^(?:0|[1-9]\d{0,2})$/.test(bits)) return false;
  return Number(bits) <= (family === 4 ? 32 : 128);
}

function isRequestUri(text: string): boolean {
  if (/\s/.test(text)) return false;
  if (text.startsWith('/')) return URL.canParse(text, 'http://localhost');
  return /^[A-Za-z][A-Za-z0-9+.-]*:/.test(text) && URL.canParse(text);
}

function isEmail(text: string): boolean {
  const address = /^[^<>]*<([^<>]+)>$/.exec(text)?.[1] ?? text;
  return /^[^\s@<>(),:;"[\]\\]+@(?:[^\s@<>(),:;"[\]\\]+|\[[0-9a-fA-F:.]+\])$/.test(address.trim());
}

const label = '[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?';
const hostname = new RegExp(`^${label}(?:\\.${label})*\\.?$`);
const isHostname: Check = (text) => text.length <= 255 && hostname.test(text);

function isIsbn10(text: string): boolean {
  const digits = text.replace(/[\s-]/g, '');
  if (!/^\d{9}[\dX]$/.test(digits)) return false;
  const sum = [...digits].reduce((total, digit, i) => total + (10 - i) * (digit === 'X' ? 10 : Number(digit)), 0);
  return sum % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = text.replace(/[\s-]/g, '');
  if (!/^\d{13}$/.test(digits)) return false;
  return [...digits].reduce((total, digit, i) => total + Number(digit) * (i % 2 === 0 ? 1 : 3), 0) % 10 === 0;
}

function isCreditCard(text: string): boolean {
  const digits = text.replace(/\D/g, '');
  const known =
    /^(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11})$/;
  if (!known.test(digits)) return false;
  const sum = [...digits].reverse().reduce((total, digit, i) => {
    const value = Number(digit) * (i % 2 === 0 ? 1 : 2);
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return sum % 10 === 0;
}

function isRgb(text: string): boolean {
  const parts = /^rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)$/.exec(text);
  return parts?.slice(1).every((part) => Number(part) <= 255) ?? false;
}

const uuid = (version: string, variant = '[0-9a-f]') =>
  matches(new RegExp(`^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?${variant}[0-9a-f]{3}-?[0-9a-f]{12}$`, 'i'));

const shortName = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?';
const longName = new RegExp(`^${shortName}(?:\\.${shortName})*$`);

/** Checks of formats by the name without dashes. Other formats are ignored, as in Kubernetes. */
const formats: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['bsonobjectid', matches(/^[0-9a-fA-F]{24}$/)],
  ['uri', isRequestUri],
  ['email', isEmail],
  ['hostname', isHostname],
  ['ipv4', isIPv4],
  ['ipv6', isIPv6],
  ['cidr', isCidr],
  [
    'mac',
    matches(
      /^(?:[0-9a-fA-F]{2}([:-]))(?:[0-9a-fA-F]{2}\1){4}(?:[0-9a-fA-F]{2}\1[0-9a-fA-F]{2}\1)?[0-9a-fA-F]{2}$|^(?:[0-9a-fA-F]{4}\.){2,3}[0-9a-fA-F]{4}$/,
    ),
  ],
  ['uuid', uuid('[0-9a-f]')],
  ['uuid3', uuid('3')],
  ['uuid4', uuid('4', '[89ab]')],
  ['uuid5', uuid('5', '[89ab]')],
  ['isbn', (text) => isIsbn10(text) || isIsbn13(text)],
  ['isbn10', isIsbn10],
  ['isbn13', isIsbn13],
  ['creditcard', isCreditCard],
  ['ssn', matches(/^\d{3}[- ]?\d{2}[- ]?\d{4}$/)],
  ['hexcolor', matches(/^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/)],
  ['rgbcolor', isRgb],
  ['byte', (text) => canonicalBase64(text) !== undefined],
  ['password', () => true],
  ['date', isDate],
  ['duration', matches(durationPattern)],
  ['datetime', isDateTime],
  ['k8sshortname', (text) => text.length <= 63 && new RegExp(`^${shortName}$`).test(text)],
  ['k8slongname', (text) => text.length <= 253 && longName.test(text)],
]);

/** The check of a format; undefined for formats that are ignored. */
export function formatCheck(format: string | undefined): Check | undefined {
  return format === undefined || format === '' ? undefined : formats.get(format.replaceAll('-', ''));
}
