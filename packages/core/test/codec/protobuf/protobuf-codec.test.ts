import { execFileSync } from 'node:child_process';
import test from 'ava';
import { protobufDecoderOf, protobufEncoderOf } from '../../../src/codec/protobuf/protobuf-codec.ts';
import { isProtobufSyntaxError, ProtobufSyntaxError } from '../../../src/codec/protobuf/wire.ts';
import { always, inline, optional, type Schema, s } from '../../../src/kind/schema.ts';
import { typeMetaFields } from '../../../src/kind/type-meta-fields.ts';

const inner = s.message('example.Inner', 'An inner message.', {
  name: optional(1, s.string(), 'A name.'),
  count: optional(2, s.int32(), 'A count.', { presence: true }),
});

const everything = s.message('example.Everything', 'One field of every type.', {
  ...typeMetaFields,
  text: optional(1, s.string(), 'Text.'),
  word: optional(2, s.enum('A', 'B'), 'Word.'),
  int: optional(3, s.int32(), 'Integer.'),
  long: optional(4, s.int64(), 'Integer.'),
  real: optional(5, s.double(), 'Number.'),
  flag: optional(6, s.bool(), 'Flag.'),
  data: optional(7, s.bytes(), 'Bytes.'),
  at: optional(8, s.time(), 'Instant.'),
  exactly: optional(9, s.microTime(), 'Instant.'),
  span: optional(10, s.duration(), 'Duration.'),
  amount: optional(11, s.quantity(), 'Quantity.'),
  port: optional(12, s.intOrString(), 'Port.'),
  raw: optional(13, s.raw(), 'Any object.'),
  any: optional(14, s.any(), 'Any value.'),
  names: optional(15, s.list(s.string()), 'Names.'),
  numbers: optional(16, s.list(s.int64()), 'Numbers.'),
  labels: optional(17, s.map(s.string()), 'Labels.'),
  limits: optional(18, s.map(s.quantity()), 'Limits.'),
  extra: optional(19, s.map(s.list(s.string())), 'Lists of words.'),
  inner: optional(20, inner, 'A message.'),
  all: optional(21, s.list(inner), 'Messages.'),
  source: inline(
    22,
    s.message('example.Source', 'Spread.', {
      path: optional(1, s.string(), 'Path.'),
      other: optional(2, inner, 'Other.'),
    }),
  ),
  maybe: optional(23, s.bool(), 'Flag with three states.', { presence: true }),
  must: always(24, s.string(), 'Always there.'),
});

const encode = protobufEncoderOf(everything as Schema<unknown>);
const decode = protobufDecoderOf(everything);
const hex = (value: unknown): string => encode(value).toString('hex');
const back = (text: string): unknown => decode(Buffer.from(text.replaceAll(' ', ''), 'hex'));

const forms: readonly (readonly [what: string, value: Record<string, unknown>, bytes: string])[] = [
  ['text', { text: 'hé' }, '0a 03 68c3a9'],
  ['negative integers take ten bytes', { int: -1 }, '18 ffffffffffffffffff01'],
  ['integers beyond 32 bits', { long: 2 ** 40 }, '20 808080808020'],
  ['the greatest integers', { long: Number.MAX_SAFE_INTEGER }, '20 ffffffffffffff0f'],
  ['the least integers', { long: Number.MIN_SAFE_INTEGER }, '20 8180808080808 0f0ff01'],
  ['numbers', { real: 1.5 }, '29 000000000000f83f'],
  ['bytes', { data: '//4A' }, '3a 03 fffe00'],
  ['times with nanos as the reference has them', { at: '1970-01-01T00:00:01Z' }, '42 04 0801 1000'],
  ['times before 1970', { at: '1969-12-31T23:59:59Z' }, '42 0d 08ffffffffffffffffff01 1000'],
  ['times to the microsecond', { exactly: '1970-01-01T00:00:01.000002Z' }, '4a 05 0801 10d00f'],
  ['durations', { span: '1.5s' }, '52 06 08 80dea0cb05'],
  ['negative durations', { span: '-1ns' }, '52 0b 08ffffffffffffffffff01'],
  ['quantities', { amount: '100m' }, '5a 06 0a04 3130306d'],
  ['a port as number', { port: 80 }, '62 06 0800 1050 1a00'],
  ['a port as text', { port: 'http' }, '62 0a 0801 1000 1a04 68747470'],
  ['embedded objects', { raw: { a: 1 } }, '6a 09 0a07 7b2261223a317d'],
  ['embedded values', { any: [1] }, '72 05 0a03 5b315d'],
  ['lists, also with empty elements', { names: ['a', ''] }, '7a0161 7a00'],
  ['lists of numbers element by element', { numbers: [1, 0] }, '800101 800100'],
  ['maps', { labels: { k: 'v' } }, '8a0106 0a016b 120176'],
  ['maps of quantities', { limits: { cpu: '1' } }, '92010a 0a03637075 1203 0a0131'],
  ['lists in maps', { extra: { k: ['a', 'b'] } }, '9a010b 0a016b 1206 0a0161 0a0162'],
  ['empty messages', { inner: {} }, 'a20100'],
  ['lists of messages', { all: [{ name: 'a' }, { count: 0 }] }, 'aa0103 0a0161 aa0102 1000'],
  ['flags with three states', { maybe: false }, 'b80100'],
];

for (const [what, value, bytes] of forms) {
  test(`bytes of ${what}`, (t) => {
    const text = bytes.replaceAll(' ', '');
    // The inlined message is no pointer in Go and therefore always written.
    t.is(hex(value), `${text}b20100`);
    t.deepEqual(back(text), value);
  });
}

test('inlined messages are nested in protobuf and flat in JSON', (t) => {
  t.is(hex({ path: '/x', other: { name: 'a' } }), 'b20109 0a022f78 1203 0a0161'.replaceAll(' ', ''));
  t.deepEqual(back('b20109 0a022f78 1203 0a0161'), { path: '/x', other: { name: 'a' } });
});

test('kind and apiVersion, unknown names and null stay out of the message', (t) => {
  t.is(hex({ kind: 'Everything', apiVersion: 'v1', text: null, nobody: 1, int: undefined }), 'b20100');
});

test('zero values that Go writes for absent fields are dropped; zero values with a meaning are kept', (t) => {
  const zeros = '0a00 1200 1800 2000 290000000000000000 3000 3a00 4200 4a00 62060800 10001a00 6a00 7200 b20100 c20100';
  t.deepEqual(back(zeros), { must: '' });
  t.deepEqual(back('b80100 a2010210 00 aa0100 7a00'), { maybe: false, inner: { count: 0 }, all: [{}], names: [''] });
  t.deepEqual(back('5a00'), { amount: '0' });
  t.deepEqual(back('52020800'), { span: '0s' });
});

test('of repeated values the last one applies, and the parts of a message are merged', (t) => {
  t.deepEqual(back('0a0161 0a0162 1801 1800'), { text: 'b' });
  t.deepEqual(back('a201030a0161 a2010210 05'), { inner: { name: 'a', count: 5 } });
  t.deepEqual(back('8a01060a016b120176 8a01060a016b120177'), { labels: { k: 'w' } });
});

test('numbers may come packed', (t) => {
  t.deepEqual(back('82010401 02ac02'), { numbers: [1, 2, 300] });
});

test('map entries may lack key or value', (t) => {
  t.deepEqual(back('8a0100 9201030a0161'), { labels: { '': '' }, limits: { a: '0' } });
});

test('a key named __proto__ is a key', (t) => {
  const value = JSON.parse('{"labels":{"__proto__":"x","constructor":"y"}}') as { labels: object };
  const decoded = decode(encode(value)) as { labels: object };
  t.true(Object.hasOwn(decoded.labels, '__proto__'));
  t.is(Object.getPrototypeOf(decoded.labels), Object.prototype);
  t.is(JSON.stringify(decoded), JSON.stringify(value));
});

test('unknown fields of every wire type are skipped', (t) => {
  t.deepEqual(back('c03e01 c13e0102030405060708 c23e03616263 c53e01020304 0a0161'), { text: 'a' });
});

test('the result shares no memory with the body', (t) => {
  const bytes = encode({ text: 'abcdefghijklmnop', data: 'AAAA', raw: { a: 'b' }, labels: { k: 'v' } });
  const decoded = decode(bytes);
  const text = JSON.stringify(decoded);
  bytes.fill(0xff);
  t.is(JSON.stringify(decoded), text);
});

const broken: readonly (readonly [why: string, bytes: string])[] = [
  ['a truncated string', '0a 05 6162'],
  ['a truncated tag', '80'],
  ['a truncated varint', '18 ff'],
  ['a length beyond all bounds', '0a ffffffff07'],
  ['a length that is no length', '0a ffffffffff'],
  ['an endless varint', '20 ffffffffffffffffffffff01'],
  ['field number 0', '00 01'],
  ['a group', '0b 0c'],
  ['an unknown group', 'c33e c43e'],
  ['a reserved wire type', 'c63e00'],
  ['another wire type', '0801'],
  ['a list of another wire type', '7801'],
  ['a field that reaches out of its message', 'a20102 0a05 6162636465'],
  ['a map entry that reaches out', '8a0103 0a05 6162636465'],
  ['a time beyond the year 9999', '42 08 08 80808080808020'],
  ['a number that is none', '29 000000000000f87f'],
  ['an embedded object that is no JSON', '6a 03 0a01 7b'],
  ['an embedded object in an envelope of its own', '6a 06 0a04 6b387300'],
  ['packed numbers that end in the middle', '820101 ff'],
];

for (const [why, bytes] of broken) {
  test(`${why} is refused`, (t) => {
    const error = t.throws(() => back(bytes));
    t.true(isProtobufSyntaxError(error));
    t.is((error as ProtobufSyntaxError).format, 'protobuf');
  });
}

test('nesting is bounded', (t) => {
  const fields: Record<string, never> = {};
  const node = { type: 'message', name: 'example.Tree', description: 'A tree.', fields } as const;
  Object.assign(fields, { child: optional(1, { node } as Schema<unknown>, 'A child.') });
  const tree: Schema<unknown> = { node };
  const nested = (depth: number): unknown => (depth === 0 ? {} : { child: nested(depth - 1) });
  t.deepEqual(protobufDecoderOf(tree)(protobufEncoderOf(tree)(nested(99))), nested(99));
  t.throws(() => protobufDecoderOf(tree)(protobufEncoderOf(tree)(nested(100))), {
    instanceOf: ProtobufSyntaxError,
    message: /deeper than 100/,
  });
});

test('large messages, and the next small one after them', (t) => {
  const large = { text: 'x'.repeat(2_000_000), names: Array.from({ length: 50_000 }, (_, index) => `n${index}`) };
  t.deepEqual(decode(encode(large)), large);
  t.is(hex({ text: 'a' }), '0a0161b20100');
});

test('a value of a wrong type is an error, and does not spoil the next message', (t) => {
  for (const value of [
    { text: 1 },
    { int: 1.5 },
    { long: 2 ** 60 },
    { inner: 'x' },
    { names: {} },
    { at: 'soon' },
    { flag: 'yes' },
  ]) {
    t.throws(() => encode({ inner: { name: 'a' }, ...value }), { instanceOf: TypeError });
    t.is(hex({ text: 'a' }), '0a0161b20100');
  }
});

test('a schema without numbers has no encoder, and codecs are made once', (t) => {
  const bare = s.message('example.Bare', 'No numbers.', { a: optional(undefined, s.string(), 'A.') });
  t.throws(() => protobufEncoderOf(bare), { message: /no protobuf form/ });
  t.throws(() => protobufEncoderOf(bare), { message: /no protobuf form/ });
  t.throws(() => protobufDecoderOf(s.string()), { message: /is not a protobuf message/ });
  t.is(protobufEncoderOf(inner), protobufEncoderOf(inner));
  t.is(protobufDecoderOf(inner), protobufDecoderOf(inner));
});

test('encoding and decoding need no code generation from strings', (t) => {
  const at = (file: string): string => JSON.stringify(new URL(`../../../src/${file}`, import.meta.url).href);
  const script = `
    import { protobufDecoderOf, protobufEncoderOf } from ${at('codec/protobuf/protobuf-codec.js')};
    import { objectMetaSchema } from ${at('kind/object-meta-schema.js')};
    const bytes = protobufEncoderOf(objectMetaSchema)({ name: 'a', labels: { k: 'v' } });
    console.log(JSON.stringify(protobufDecoderOf(objectMetaSchema)(bytes)));`;
  const out = execFileSync(process.execPath, [
    '--disallow-code-generation-from-strings',
    '--input-type=module',
    '-e',
    script,
  ]);
  t.is(out.toString().trim(), '{"name":"a","labels":{"k":"v"}}');
});
