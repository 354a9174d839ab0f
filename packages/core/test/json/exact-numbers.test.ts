import test from 'ava';
import fc from 'fast-check';
import { optional, s } from '../../src/index.ts';
import {
  applyJsonPatch,
  applyMergePatch,
  type DocumentError,
  decoderOf,
  jsonText,
  parseJson,
  parseJsonText,
  parseYaml,
  protobufDecoderOf,
  protobufEncoderOf,
  StoredObject,
  toYaml,
} from '../../src/internal.ts';

const json = (text: string) => parseJson(Buffer.from(text), { duplicates: true }).value;
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const exact = (value: bigint) => (Number.isSafeInteger(Number(value)) ? Number(value) : value);

test('property: integers of 64 bits come through JSON and YAML as they are', (t) => {
  fc.assert(
    fc.property(int64, fc.string(), (integer, text) => {
      const value = { [text]: exact(integer), list: [exact(integer), text] };
      t.deepEqual(json(jsonText(value)), value);
      t.deepEqual(json(jsonText(value, 2)), value);
      t.deepEqual(parseJsonText(jsonText(value)), value);
      t.deepEqual(parseYaml(toYaml({ list: value.list })).value, { list: value.list });
    }),
    { numRuns: 300 },
  );
});

test('a long integer is exact wherever JSON allows it, and long digits inside of strings are only text', (t) => {
  const long = 9007199254740993n;
  t.is(parseJsonText(`${long}`), long);
  t.is(parseJsonText(`-${long}`), -long);
  t.is(parseJsonText(` ${long}`), long);
  t.deepEqual(parseJsonText(`[${long},${long}]`), [long, long]);
  t.deepEqual(parseJsonText(`{"a":${long},"b":\n${long}}`), { a: long, b: long });
  for (const text of [`${long}`, `:${long}`, `ab${long}`])
    t.deepEqual(parseJsonText(JSON.stringify({ text })), { text });
});

test('property: a number that JavaScript prints is read back as the same number', (t) => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
      t.is(JSON.stringify(Number(json(JSON.stringify(number)))), JSON.stringify(number));
      t.is(JSON.stringify(Number(parseJsonText(JSON.stringify(number)))), JSON.stringify(number));
    }),
    { numRuns: 500 },
  );
});

const refused: readonly [literal: string, place: string, why: RegExp][] = [
  ['12345678901234567890', 'line 1, column 6', /integer does not fit into 64 bits/],
  ['-9223372036854775809', 'line 1, column 6', /integer does not fit into 64 bits/],
  [`1${'0'.repeat(400)}`, 'line 1, column 6', /integer does not fit into 64 bits/],
  ['1e400', 'line 1, column 6', /too large for 64-bit floating point/],
  ['-1.5E+999', 'line 1, column 6', /too large for 64-bit floating point/],
];
for (const [literal, place, why] of refused) {
  test(`a number without an exact value is refused: ${literal.slice(0, 30)}`, (t) => {
    const error = t.throws(() => json(`{"a":${literal}}`)) as DocumentError;
    t.is(error.reason, 'range');
    t.regex(error.message, why);
    t.true(error.message.includes(place), error.message);
  });
}

test('long numbers with an exact value and digits in strings are accepted', (t) => {
  t.deepEqual(json('{"a":"12345678901234567890","k12345678901234567890":0.1234567890123456789,"c":1e308}'), {
    a: '12345678901234567890',
    k12345678901234567890: 0.12345678901234568,
    c: 1e308,
  });
  t.deepEqual(json('[100000000000000000000,1e21,-0,1e-400]'), [1e20, 1e21, -0, 0]);
  for (const text of ['[01234567890123456789]', '[1234567890123456789-]', '[12345678901234567890', '[1e400e]', '[-]']) {
    t.is((t.throws(() => json(text)) as DocumentError).reason, 'syntax', text);
  }
});

const schema = s.message('x.Numbers', '', {
  big: optional(1, s.int64(), ''),
  many: optional(2, s.list(s.int64()), ''),
  open: optional(3, s.raw(), ''),
  weight: optional(4, s.double(), ''),
});
const document = '{"big":9223372036854775807,"many":[-9223372036854775808,5],"open":{"x":9007199254740993}}';

test('typed fields of 64 bits accept their whole range in JSON and protobuf', (t) => {
  const { value, errors } = decoderOf(schema)(json(document));
  t.deepEqual(errors, []);
  t.is(jsonText(value), document);
  const read = protobufDecoderOf(schema)(protobufEncoderOf(schema)(value));
  t.is(jsonText(decoderOf(schema)(read).value), document);
  t.deepEqual(decoderOf(schema)(json('{"weight":9007199254740993}')).value, { weight: 9007199254740992 });
});

test('patches keep and compare integers of 64 bits', (t) => {
  const value = json(document);
  t.is(
    jsonText(applyMergePatch(value, json('{"open":{"y":9007199254740995}}'))),
    document.replace('993}', '993,"y":9007199254740995}'),
  );
  const operations = [
    { op: 'test', path: '/open/x', value: 9007199254740993n },
    { op: 'copy', from: '/big', path: '/open/x' },
  ];
  t.is(jsonText(applyJsonPatch(value, operations)), document.replace('9007199254740993', '9223372036854775807'));
  t.throws(() => applyJsonPatch(value, [{ op: 'test', path: '/open/x', value: 9007199254740992 }]));
});

test('stored objects are read with their integers of 64 bits', (t) => {
  const bytes = Buffer.from(
    '{"kind":"X","apiVersion":"v1","metadata":{"name":"a"},"x":9007199254740993,"y":123456789012345678000}',
  );
  const value = StoredObject.fromValue('/x', 1, 1, bytes).value() as unknown as { x: unknown; y: unknown };
  t.is(value.x, 9007199254740993n);
  t.is(value.y, Number('123456789012345678000'));
});
