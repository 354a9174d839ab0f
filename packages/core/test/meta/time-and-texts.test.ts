import test from 'ava';
import fc from 'fast-check';
import { canonicalBase64 } from '../../src/meta/base64.ts';
import { DurationError, durationMs, durationOfMs, formatDuration, parseDuration } from '../../src/meta/duration.ts';
import { humanDuration } from '../../src/meta/human-duration.ts';
import { percentErrors, percentOf, resolveIntOrPercent } from '../../src/meta/int-or-string.ts';
import { isCIDR, isIP, isIPv4, isIPv6, portNumberErrors } from '../../src/meta/ip.ts';
import {
  formatInstant,
  formatMicroInstant,
  formatMicroTime,
  formatTime,
  isZeroInstant,
  parseInstant,
  timeMs,
} from '../../src/meta/time.ts';

const seconds = 1000;
const minutes = 60 * seconds;
const hours = 60 * minutes;
const days = 24 * hours;

test('ages are shown in two units while they matter', (t) => {
  const cases: readonly [number, string][] = [
    [-2 * seconds, '<invalid>'],
    [-1.5 * seconds, '0s'],
    [0, '0s'],
    [999, '0s'],
    [119 * seconds, '119s'],
    [2 * minutes, '2m'],
    [2 * minutes + 5 * seconds, '2m5s'],
    [10 * minutes + 5 * seconds, '10m'],
    [179 * minutes, '179m'],
    [3 * hours, '3h'],
    [3 * hours + 5 * minutes, '3h5m'],
    [8 * hours + 5 * minutes, '8h'],
    [47 * hours, '47h'],
    [2 * days, '2d'],
    [2 * days + 3 * hours, '2d3h'],
    [8 * days + 3 * hours, '8d'],
    [729 * days, '729d'],
    [730 * days, '2y'],
    [760 * days, '2y30d'],
    [8 * 365 * days + days, '8y'],
  ];
  for (const [ms, text] of cases) t.is(humanDuration(ms), text);
});

test('instants are read with any offset and fraction, and written in UTC', (t) => {
  const cases: readonly [string, string | undefined][] = [
    ['2024-02-29T12:00:00Z', '2024-02-29T12:00:00Z'],
    ['2024-01-01T00:30:00+01:00', '2023-12-31T23:30:00Z'],
    ['2023-12-31T23:30:00.999-01:00', '2024-01-01T00:30:00Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00Z'],
    ['1969-12-31T23:59:59.9Z', '1969-12-31T23:59:59Z'],
    ['2023-02-29T12:00:00Z', undefined],
    ['1900-02-29T12:00:00Z', undefined],
    ['2024-13-01T00:00:00Z', undefined],
    ['2024-01-01T24:00:00Z', undefined],
    ['2024-01-01T00:00:60Z', undefined],
    ['2024-01-01T00:00:00', undefined],
    ['2024-01-01 00:00:00Z', undefined],
    ['2024-01-01T00:00:00z', undefined],
    ['2024-1-1T00:00:00Z', undefined],
    ['2024-01-01T00:00:00.Z', undefined],
    ['2024-01-01T00:00:00+24:00', undefined],
    ['9999-12-31T23:59:59-01:00', undefined],
    ['0000-01-01T00:00:00+01:00', undefined],
    [`2024-01-01T00:00:00.${'1'.repeat(100_000)}Z`, undefined],
    ['', undefined],
  ];
  for (const [text, expected] of cases) {
    const instant = parseInstant(text);
    t.is(instant && formatInstant(instant), expected, text.slice(0, 40));
  }
  const micro = parseInstant('2024-01-01T00:00:00.1234569Z');
  t.is(micro && formatMicroInstant(micro), '2024-01-01T00:00:00.123456Z');
  t.is(timeMs('1970-01-01T00:00:01.5Z'), 1500);
  t.is(timeMs('x'), undefined);
  t.true(isZeroInstant(parseInstant('0001-01-01T01:00:00+01:00') ?? { seconds: 0, nanos: 0 }));
  t.is(formatTime(new Date(1500)), '1970-01-01T00:00:01Z');
  t.is(formatMicroTime(new Date(1500)), '1970-01-01T00:00:01.500000Z');
});

test('instants survive writing and reading', (t) => {
  const date = fc.date({
    min: new Date('0001-01-01T00:00:00Z'),
    max: new Date('9999-12-31T23:59:59Z'),
    noInvalidDate: true,
  });
  fc.assert(
    fc.property(
      date,
      (when) => timeMs(when.toISOString()) === when.getTime() && timeMs(formatMicroTime(when)) === when.getTime(),
    ),
  );
  t.pass();
});

test('durations are read and written as Go does', (t) => {
  const cases: readonly [string, string][] = [
    ['0', '0s'],
    ['90m', '1h30m0s'],
    ['1h', '1h0m0s'],
    ['1h30m', '1h30m0s'],
    ['1.5s', '1.5s'],
    ['300ms', '300ms'],
    ['1500ms', '1.5s'],
    ['1us', '1µs'],
    ['1.5µs', '1.5µs'],
    ['1μs', '1µs'],
    ['1ns', '1ns'],
    ['-1m30.5s', '-1m30.5s'],
    ['+5s', '5s'],
    ['.5s', '500ms'],
    ['5.s', '5s'],
    ['1s1s', '2s'],
    ['2562047h47m16.854775807s', '2562047h47m16.854775807s'],
  ];
  for (const [text, expected] of cases) t.is(formatDuration(parseDuration(text)), expected, text);
  for (const text of [
    '',
    '-',
    '5',
    's',
    '5x',
    '1h 5m',
    '.s',
    '1.5.5s',
    '1e3s',
    '2562048h',
    '9'.repeat(200),
    '--5s',
    '5S',
  ]) {
    t.throws(() => parseDuration(text), { instanceOf: DurationError }, text);
  }
  t.is(durationMs('1.5s'), 1500);
  t.is(durationOfMs(90_000), '1m30s');
});

test('every duration survives writing and reading', (t) => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: -(2n ** 63n) + 1n, max: 2n ** 63n - 1n }),
      (nanos) => parseDuration(formatDuration(nanos)) === nanos,
    ),
  );
  t.pass();
});

test('base64 is checked, joined and made canonical', (t) => {
  const cases: readonly [string, string | undefined][] = [
    ['', ''],
    ['YQ==', 'YQ=='],
    ['YR==', 'YQ=='],
    ['YWI=', 'YWI='],
    ['YWJj', 'YWJj'],
    ['YW\r\nJj\n', 'YWJj'],
    ['YQ', undefined],
    ['YQ=', undefined],
    ['Y===', undefined],
    ['=', undefined],
    ['YQ==YQ==', undefined],
    ['YW-_', undefined],
    ['YW J', undefined],
  ];
  for (const [text, expected] of cases) t.is(canonicalBase64(text), expected, text);
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const text = Buffer.from(bytes).toString('base64');
      return canonicalBase64(text) === text;
    }),
  );
  t.is(canonicalBase64(`${'A'.repeat(4_000_000)}!AAA`), undefined);
});

test('percentages resolve up or down', (t) => {
  t.is(resolveIntOrPercent(3, 10, 'up'), 3);
  t.is(resolveIntOrPercent('25%', 10, 'up'), 3);
  t.is(resolveIntOrPercent('25%', 10, 'down'), 2);
  t.is(resolveIntOrPercent('http', 10, 'up'), undefined);
  t.is(percentOf('7%'), 7);
  t.deepEqual(percentErrors('7%'), []);
  for (const text of ['%', '7', '-7%', '7.5%', '7%%', '']) t.is(percentErrors(text).length, 1, text);
});

test('addresses, networks and ports', (t) => {
  t.true(isIPv4('10.0.0.1'));
  for (const text of ['10.0.0', '10.0.0.256', '010.0.0.1', ' 10.0.0.1', '10.0.0.1/8']) t.false(isIPv4(text), text);
  t.true(isIPv6('::1') && isIPv6('fd00::1') && isIPv6('::ffff:10.0.0.1'));
  for (const text of ['fe80::1%eth0', ':::1', '[::1]', '']) t.false(isIP(text), text);
  t.true(isCIDR('10.0.0.0/8') && isCIDR('fd00::/64') && isCIDR('0.0.0.0/0') && isCIDR('::/128'));
  for (const text of ['10.0.0.0', '10.0.0.0/33', '10.0.0.0/08', '10.0.0.0/', '/8', '10.0.0.0/8/8', '::/129', 'x/8'])
    t.false(isCIDR(text), text);
  t.deepEqual(portNumberErrors(80), []);
  for (const port of [0, -1, 65_536, 1.5]) t.is(portNumberErrors(port).length, 1);
});
