import { isIPv6 } from 'node:net';

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

/** Accepts what the Go package strfmt does: a zone is required, and there are no leap seconds. */
function isDateTime(text: string): boolean {
  const parts = /^([^tT]+)[tT](\d\d):(\d\d):(\d\d)(?:.\d+)?(?:[zZ]|[+-]\d\d:\d\d)(?:[tT]|$)/.exec(text);
  if (parts === null) return false;
  const [, date = '', hour, minute, second] = parts;
  return isDate(date) && Number(hour) < 24 && Number(minute) < 60 && Number(second) < 60;
}

const goDuration = /^[-+]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/;
/** A number and its unit. The lookbehind keeps the search linear. */
const scalaPart = /(?<!\d)(\d+)\s*([A-Za-zµ]+)/g;
const scalaUnit = /^(?:ns|nano.*|us|µs|micro.*|ms|milli.*|s|sec.*|m|min.*|h|hr|hour.*|d|day.*|w|wk|week.*)$/i;

/** Accepts a duration of Go and any text that contains a number with a unit, as the Go package strfmt does. */
function isDuration(text: string): boolean {
  if (goDuration.test(text)) return true;
  let known = false;
  for (const [, digits, unit] of text.matchAll(scalaPart)) {
    if (Number(digits) >= 2 ** 63) return false;
    known ||= scalaUnit.test(unit as string);
  }
  return known;
}

/** IPv4 addresses may have leading zeros, as before Go 1.17. */
function isDottedAddress(text: string): boolean {
  return /^\d+(?:\.\d+){3}$/.test(text) && text.split('.').every((part) => Number(part) <= 255);
}

const isColonAddress: Check = (text) => isIPv6(text) && !text.includes('%');

function isCidr(text: string): boolean {
  const [address = '', bits = '', ...rest] = text.split('/');
  const longest = isDottedAddress(address) ? 32 : isColonAddress(address) ? 128 : -1;
  return rest.length === 0 && /^\d+$/.test(bits) && Number(bits) <= longest;
}

const host = `[\\w.~!$&'()*+,;=<>"\\u0080-\\u{10ffff}-]`;
const authority = new RegExp(
  `^(?:[\\w.~!$&'()*+,;=:%-]*@)?(?:\\[[^\\]]*\\](?::\\d*)?|(?:${host}|:)*:\\d*|${host}*)$`,
  'u',
);

/** Accepts what `url.ParseRequestURI` of Go does: a path, or a URL with a scheme. */
function isRequestUri(text: string): boolean {
  if (text === '*') return true;
  if (/[^\P{Cc}\u0080-\u009f]/u.test(text)) return false;
  const scheme = /^[A-Za-z][A-Za-z0-9+.-]*:/.exec(text)?.[0] ?? '';
  const [rest = ''] = text.slice(scheme.length).split('?', 1);
  if (!rest.startsWith('/')) return scheme !== '';
  const path = scheme !== '' && rest.startsWith('//') ? rest.indexOf('/', 2) : 0;
  const end = path < 0 ? rest.length : path;
  return !/%(?![0-9a-fA-F]{2})/.test(rest.slice(end)) && (end === 0 || authority.test(rest.slice(2, end)));
}

const atom = '[^\\s@<>(),:;"[\\]\\\\.]+';
const emailAddress = new RegExp(
  `^(?:${atom}(?:\\.${atom})*|"(?:[^"\\\\]|\\\\.)*")@(?:${atom}(?:\\.${atom})*|\\[[0-9a-fA-F:.]+\\])$`,
);

function isEmail(text: string): boolean {
  const address = /^[^<>]*<([^<>]+)>$/.exec(text)?.[1] ?? text;
  return emailAddress.test(address.trim());
}

const name = '[a-zA-Z0-9\\p{S}\\p{L}]';
const inner = '[a-zA-Z0-9\\p{S}\\p{L}-]';
const hostname = new RegExp(
  `^(?:${name}(?:-?${name}{0,62})?|(?:${name}(?:${inner}{0,61}${name})?\\.)+[a-zA-Z\\p{L}]{2,63})$`,
  'u',
);

/** A single label, or labels and a top-level domain of letters. Lengths are those in UTF-8. */
function isHostname(text: string): boolean {
  if (text.length > 255 || Buffer.byteLength(text) > 255 || !hostname.test(text)) return false;
  return text.split('.').every((part) => Buffer.byteLength(part) <= 63);
}

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

const rgbPart = '\\s*(?:0|[1-9]\\d?|1\\d\\d|2[0-4]\\d|25[0-5])\\s*';
const rgb = new RegExp(`^rgb\\(${rgbPart},${rgbPart},${rgbPart}\\)$`);

const uuid = (version: string, variant = '[0-9a-f]') =>
  matches(new RegExp(`^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?${variant}[0-9a-f]{3}-?[0-9a-f]{12}$`, 'i'));

/** Checks of formats by the name without dashes. Other formats are ignored, as in Kubernetes 1.34. */
const formats: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['bsonobjectid', matches(/^[0-9a-fA-F]{24}$/)],
  ['uri', isRequestUri],
  ['email', isEmail],
  ['hostname', isHostname],
  ['ipv4', (text) => isDottedAddress(text) || (isColonAddress(text) && text.includes('.'))],
  ['ipv6', isColonAddress],
  ['cidr', isCidr],
  [
    'mac',
    matches(
      /^(?:[0-9a-f]{12}|[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4}(?:(?:[0-9a-f]{2}\1){2}|(?:[0-9a-f]{2}\1){14})?[0-9a-f]{2}|(?:[0-9a-f]{4}\.){2,3}[0-9a-f]{4}|(?:[0-9a-f]{4}\.){9}[0-9a-f]{4})$/i,
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
  ['ssn', matches(/^\d{3}[- ]\d{2}[- ]\d{4}$/)],
  ['hexcolor', matches(/^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/)],
  ['rgbcolor', matches(rgb)],
  ['byte', matches(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/)],
  ['password', () => true],
  ['date', isDate],
  ['duration', isDuration],
  ['datetime', isDateTime],
]);

/** The check of a format; undefined for formats that are ignored. */
export function formatCheck(format: string | undefined): Check | undefined {
  return format === undefined || format === '' ? undefined : formats.get(format.replaceAll('-', ''));
}
