import test from 'ava';
import fc from 'fast-check';
import { DecodeTypeError, decoderOf } from '../../src/kind/decoder.ts';
import { Widget } from './sample-kinds.ts';

const decode = decoderOf(Widget.schema);
const fields = [
  ...[
    'kind',
    'apiVersion',
    'metadata',
    'spec',
    'status',
    'name',
    'labels',
    'ownerReferences',
    'managedFields',
    'fieldsV1',
  ],
  ...[
    'size',
    'color',
    'ports',
    'limits',
    'probe',
    'every',
    'since',
    'exact',
    'key',
    'weight',
    'big',
    'paused',
    'mode',
    'raw',
  ],
  ...[
    'parts',
    'tags',
    'port',
    'command',
    'protocol',
    'template',
    '__proto__',
    'constructor',
    'hasOwnProperty',
    'unknown',
  ],
];

/** JSON in which known field names, hostile names and every type meet at random. */
const hostile = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'medium', withCrossShrink: true },
    fc.constantFrom(
      null,
      true,
      '',
      'Fast',
      'TCP',
      '1Gi',
      '0.5',
      '1h',
      '2024-01-02T03:04:05Z',
      'YQ==',
      0,
      1,
      -1,
      1.5,
      2 ** 40,
      1e300,
    ),
    fc.array(tie('value'), { maxLength: 3 }),
    fc
      .uniqueArray(fc.tuple(fc.constantFrom(...fields), tie('value')), { maxLength: 6, selector: ([key]) => key })
      .map((entries) => {
        const text = entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',');
        return JSON.parse(`{${text}}`) as unknown;
      }),
  ),
})).value;

const quantity = fc.constantFrom('1', '0.5', '1024Ki', '3e3', '12.5M', '100m', '0', '1n');
const port = fc.record(
  {
    port: fc.integer({ min: 1, max: 65_535 }),
    protocol: fc.constantFrom('TCP', 'UDP', ''),
    name: fc.string(),
    junk: fc.anything(),
  },
  { requiredKeys: ['port'] },
);

/** Objects that decode without a type error. */
const wellTyped = fc.record(
  {
    metadata: fc.record(
      { labels: fc.dictionary(fc.string(), fc.string()), generation: fc.maxSafeInteger() },
      { requiredKeys: [] },
    ),
    spec: fc.record(
      {
        size: fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })),
        ports: fc.array(port, { maxLength: 3 }),
        limits: fc.dictionary(fc.string(), quantity),
        parts: fc.dictionary(fc.string(), port),
        since: fc
          .date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true })
          .map((date) => date.toISOString().replace('Z', '+02:00')),
        exact: fc
          .date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true })
          .map((date) => date.toISOString()),
        every: fc.integer({ min: -1e9, max: 1e9 }).map((ms) => `${ms}ms`),
        key: fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('base64')),
        raw: fc.dictionary(fc.string(), fc.jsonValue()),
        weight: fc.double({ noNaN: true, noDefaultInfinity: true }),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
);

test('no JSON crashes the decoder: it decodes, or throws a type error', (t) => {
  fc.assert(
    fc.property(hostile, (input) => {
      try {
        const { value } = decode(input);
        if (Object.getPrototypeOf(value) !== Object.prototype) return false;
        JSON.stringify(value);
        return true;
      } catch (error) {
        return error instanceof DecodeTypeError;
      }
    }),
    { numRuns: 5000 },
  );
  t.is(Object.keys(Object.prototype).length, 0);
});

test('decoding a decoded value changes nothing, byte for byte', (t) => {
  fc.assert(
    fc.property(wellTyped, (input) => {
      const first = decode(input);
      const second = decode(first.value);
      return (
        JSON.stringify(second.value) === JSON.stringify(first.value) &&
        second.unknownFields.length === 0 &&
        second.errors.length === first.errors.length
      );
    }),
    { numRuns: 2000 },
  );
  t.pass();
});

test('the order of the input does not matter', (t) => {
  const shuffled = (value: unknown): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(
          Object.entries(value)
            .reverse()
            .map(([key, inner]) => [key, shuffled(inner)]),
        )
      : value;
  fc.assert(
    fc.property(
      fc.record({
        spec: fc.record({ size: fc.nat(100), color: fc.constant('red'), paused: fc.boolean(), big: fc.nat() }),
      }),
      (input) => {
        return JSON.stringify(decode(shuffled(input)).value) === JSON.stringify(decode(input).value);
      },
    ),
  );
  t.pass();
});
