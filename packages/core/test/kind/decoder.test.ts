import test from 'ava';
import { DecodeTypeError, decoderOf, isDecodeTypeError } from '../../src/kind/decoder.ts';
import { always, optional, required, type Schema, s } from '../../src/kind/schema.ts';
import { Widget } from './sample-kinds.ts';

const decode = decoderOf(Widget.schema);

function spec(input: Record<string, unknown>) {
  return decode({ spec: input });
}

function decoded(input: Record<string, unknown>): Record<string, unknown> {
  const { value, errors } = spec(input);
  if (errors.length > 0) throw new Error(JSON.stringify(errors));
  return value.spec as unknown as Record<string, unknown>;
}

test('fields come out in schema order, maps in input order', (t) => {
  const { value } = decode({
    status: { ready: true },
    spec: { limits: { z: '1', a: '2' }, size: 1 },
    metadata: { labels: { z: '1', a: '2' }, name: 'a' },
    apiVersion: 'example.com/v1',
    kind: 'Widget',
  });
  t.is(
    JSON.stringify(value),
    '{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a","labels":{"z":"1","a":"2"}},' +
      '"spec":{"size":1,"limits":{"z":"1","a":"2"},"mode":"Slow"},"status":{"ready":true}}',
  );
});

test('the input is never changed and shares no containers with the value', (t) => {
  const input = { spec: { ports: [{ port: 1 }], limits: { cpu: 0.5 } } };
  const before = JSON.stringify(input);
  const { value } = decode(input);
  t.is(JSON.stringify(input), before);
  t.not(value.spec.ports as unknown, input.spec.ports as unknown);
});

test('absent and null fields are treated alike: zero value, default or absent', (t) => {
  t.deepEqual(decode({}).value, { spec: { size: 0, mode: 'Slow' } } as never);
  t.deepEqual(spec({ size: null, color: null, mode: null, ports: null }).value, {
    spec: { size: 0, mode: 'Slow' },
  } as never);
  t.deepEqual(decode({ spec: null, metadata: { creationTimestamp: null } }).value, {
    metadata: {},
    spec: { size: 0, mode: 'Slow' },
  } as never);
  t.deepEqual(decoded({ template: {} })['template'], { metadata: {} });
});

test('inlined messages are flat, with the defaults of their parent', (t) => {
  t.deepEqual(decoded({ probe: { port: 'http', command: ['a'] } })['probe'], {
    command: ['a'],
    port: 'http',
    periodSeconds: 10,
  });
});

test('object defaults are fresh for every value', (t) => {
  const schema = s.message('x.A', '', {
    list: optional(1, s.list(s.string()), '', { default: ['a'] }),
    zero: always(2, s.map(s.string()), ''),
  });
  const one = decoderOf(schema)({}).value;
  one.list?.push('b');
  one.zero['k'] = 'v';
  t.deepEqual(decoderOf(schema)({}).value, { list: ['a'], zero: {} });
});

test('a default that violates its own schema fails when the decoder is made', (t) => {
  t.throws(() => decoderOf(s.message('x.A', '', { a: optional(1, s.enum('x'), '', { default: 'y' }) })), {
    message: /default of field a/,
  });
  t.throws(() => decoderOf(s.message('x.A', '', { a: optional(1, s.int32(), '', { default: 'y' }) })), {
    message: /default of field a/,
  });
});

test('a missing required field is named with its path', (t) => {
  const { errors } = spec({ ports: [{ port: 1 }, { name: 'x' }, { port: null }], parts: { 'a.b': {} } });
  t.deepEqual(
    errors.map((error) => [error.reason, error.field, error.message]),
    [
      ['FieldValueRequired', 'spec.ports[1].port', 'Required value'],
      ['FieldValueRequired', 'spec.ports[2].port', 'Required value'],
      ['FieldValueRequired', 'spec.parts[a.b].port', 'Required value'],
    ],
  );
});

test('unknown fields are dropped and named with their paths', (t) => {
  const { value, unknownFields } = decode({
    foo: 1,
    spec: {
      x: null,
      ports: [{ port: 1, y: 2 }],
      probe: { handler: {} },
      parts: { k: { port: 1, z: 1 } },
      constructor: 1,
    },
    metadata: { ownerReferences: [{ uid: 'u', bar: true }] },
  });
  t.deepEqual(unknownFields.toSorted(), [
    'foo',
    'metadata.ownerReferences[0].bar',
    'spec.constructor',
    'spec.parts[k].z',
    'spec.ports[0].y',
    'spec.probe.handler',
    'spec.x',
  ]);
  t.false(JSON.stringify(value).includes('bar'));
});

test('values out of bounds, patterns and closed sets are 422 findings', (t) => {
  const found = (input: Record<string, unknown>) =>
    spec(input).errors.map((error) => `${error.field}: ${error.message}`);
  t.deepEqual(found({ mode: 'Other' }), ['spec.mode: Unsupported value: "Other": supported values: "Fast", "Slow"']);
  t.deepEqual(found({ ports: [{ port: 0 }] }), [
    'spec.ports[0].port: Invalid value: 0: must be greater than or equal to 1',
  ]);
  t.deepEqual(found({ ports: [{ port: 70_000 }] }), [
    'spec.ports[0].port: Invalid value: 70000: must be less than or equal to 65535',
  ]);
  t.deepEqual(found({ color: 'RED' }), [
    `spec.color: Invalid value: "RED": must match the regular expression '^[a-z]+$'`,
  ]);
  t.deepEqual(found({ color: 'x' }), ['spec.color: Invalid value: "x": must have at least 2 characters']);
  t.deepEqual(found({ color: '𝒳𝒳𝒳𝒳𝒳𝒳𝒳𝒳𝒳' }), ['spec.color: Too long: may not be more than 8 bytes']);
  t.deepEqual(found({ ports: [1, 2, 3, 4].map((port) => ({ port })) }), [
    'spec.ports: Too many: 4: must have at most 3 items',
  ]);
  t.is(found({ limits: { cpu: 'much' } }).length, 1);
  t.is(found({ since: 'yesterday', exact: '2024-02-30T00:00:00Z', every: '5' }).length, 3);
});

test('an empty text means absent in a field with a closed set of values', (t) => {
  t.is(decoded({ mode: '' })['mode'], 'Slow');
  t.deepEqual(decoded({ ports: [{ port: 1, protocol: '' }] })['ports'], [{ protocol: 'TCP', port: 1 }]);
});

test('zeros and empty collections mean absent in a message with a protobuf form', (t) => {
  const fields = {
    text: optional(1, s.string(), ''),
    number: optional(2, s.int32(), ''),
    flag: optional(3, s.bool(), ''),
    bytes: optional(4, s.bytes(), ''),
    list: optional(5, s.list(s.string()), ''),
    map: optional(6, s.map(s.string()), ''),
  };
  const zeros = { text: '', number: -0, flag: false, bytes: '', list: [], map: {} };
  t.deepEqual(decoderOf(s.message('x.A', '', fields))(zeros).value, {});
  const jsonOnly = s.object({ size: optional(s.int32()), tags: optional(s.list(s.string())) });
  t.deepEqual(decoderOf(jsonOnly)({ size: 0, tags: [] }).value, { size: 0, tags: [] });
  t.throws(() => decoderOf(s.message('x.A', '', fields))({ map: [] }), { instanceOf: DecodeTypeError });
});

test('zeros remain where they differ from absence', (t) => {
  const schema = s.message('x.A', '', {
    pointer: optional(1, s.int32(), '', { presence: true }),
    defaulted: optional(2, s.bool(), '', { default: true }),
    nested: optional(3, s.message('x.B', '', {}), ''),
    amount: optional(4, s.quantity(), ''),
    target: optional(5, s.intOrString(), ''),
    values: optional(6, s.list(s.string()), ''),
    list: optional(7, s.list(s.string()), '', { presence: true }),
    map: optional(8, s.map(s.string()), ''),
    required: required(9, s.string(), ''),
  });
  const zeros = {
    pointer: 0,
    defaulted: false,
    nested: {},
    amount: '0',
    target: 0,
    values: [''],
    list: [],
    map: { key: '' },
    required: '',
  };
  t.deepEqual(decoderOf(schema as Schema<unknown>)(zeros).value, zeros);
});

test('texts come out in canonical form', (t) => {
  t.deepEqual(decoded({ limits: { a: '0.5', b: '1024Ki', c: 2, d: ' 1 ' } })['limits'], {
    a: '500m',
    b: '1Mi',
    c: '2',
    d: '1',
  });
  t.is(decoded({ since: '2024-01-02T03:04:05.987654321+01:30' })['since'], '2024-01-02T01:34:05Z');
  t.is(decoded({ exact: '2024-01-02T03:04:05.98765432Z' })['exact'], '2024-01-02T03:04:05.987654Z');
  t.is(decoded({ exact: '2024-01-02T03:04:05Z' })['exact'], '2024-01-02T03:04:05.000000Z');
  t.is(decoded({ since: '0001-01-01T00:00:00Z' })['since'], undefined);
  t.is(decoded({ every: '90m' })['every'], '1h30m0s');
  t.is(decoded({ key: 'YQ\n==' })['key'], 'YQ==');
});

const wrongTypes: readonly [string, Record<string, unknown>, string][] = [
  ['string for an integer', { size: '1' }, 'spec.size'],
  ['fraction for an integer', { size: 1.5 }, 'spec.size'],
  ['33 bits for 32', { size: 2 ** 31 }, 'spec.size'],
  ['an inexact number for 64 bits', { big: 2 ** 53 }, 'spec.big'],
  ['65 bits for 64', { big: 2n ** 63n }, 'spec.big'],
  ['bigint for 32 bits', { size: 2n ** 53n }, 'spec.size'],
  ['infinity', { weight: Number.POSITIVE_INFINITY }, 'spec.weight'],
  ['number for a string', { color: 1 }, 'spec.color'],
  ['string for a boolean', { paused: 'true' }, 'spec.paused'],
  ['object for a list', { ports: {} }, 'spec.ports'],
  ['list for an object', { probe: [] }, 'spec.probe'],
  ['list for a map', { limits: [] }, 'spec.limits'],
  ['boolean for a quantity', { limits: { cpu: true } }, 'spec.limits[cpu]'],
  ['number for a time', { since: 5 }, 'spec.since'],
  ['number for a duration', { every: 5 }, 'spec.every'],
  ['text that is not base64', { key: '***' }, 'spec.key'],
  ['unpadded base64', { key: 'YQ' }, 'spec.key'],
  ['boolean for a number or text', { probe: { port: true } }, 'spec.probe.port'],
  ['list for any object', { raw: [] }, 'spec.raw'],
  ['scalar in a list of objects', { ports: [{ port: 1 }, 5] }, 'spec.ports[1]'],
  ['wrong type in a map of objects', { parts: { 'a/b': { port: '1' } } }, 'spec.parts[a/b].port'],
];

for (const [title, input, path] of wrongTypes) {
  test(`wrong JSON type: ${title}`, (t) => {
    const error = t.throws(() => spec(input), { instanceOf: DecodeTypeError });
    t.is(error?.path, path);
    t.true(isDecodeTypeError(error));
  });
}

test('a document that is no object is a type error without a path', (t) => {
  for (const input of [null, undefined, [], 'x', 1])
    t.is(t.throws(() => decode(input), { instanceOf: DecodeTypeError })?.path, '');
});

test('raw and any values are kept as they are', (t) => {
  const raw = JSON.parse('{"__proto__":{"x":1},"b":[null,{"a":null}],"a":1.5}');
  t.is(decoded({ raw })['raw'], raw);
});

test('keys like __proto__ are plain data in maps and unknown in messages', (t) => {
  const input = JSON.parse(
    '{"__proto__":{"polluted":1},"metadata":{"labels":{"__proto__":"a","constructor":"b","toString":"c"}},"spec":{"parts":{"__proto__":{"port":1}}}}',
  );
  const { value, unknownFields } = decode(input);
  t.deepEqual(unknownFields, ['__proto__']);
  t.is(Object.getPrototypeOf(value), Object.prototype);
  t.is(JSON.stringify(value.metadata?.labels), '{"__proto__":"a","constructor":"b","toString":"c"}');
  t.is(JSON.stringify(value.spec.parts), '{"__proto__":{"protocol":"TCP","port":1}}');
  t.is(({} as Record<string, unknown>)['polluted'], undefined);
});

test('inherited properties are no fields', (t) => {
  const schema = s.message('x.A', '', { toString: optional(1, s.string(), ''), a: required(2, s.string(), '') });
  const { value, errors } = decoderOf(schema as Schema<unknown>)(Object.create({ a: 'inherited' }));
  t.deepEqual(value, {});
  t.is(errors.length, 1);
});

test('findings are bounded, and so are the paths they name', (t) => {
  const many = decoderOf(s.list(s.message('x.A', '', { a: required(1, s.string(), '') })));
  const { errors, unknownFields } = many(Array.from({ length: 5000 }, (_, index) => ({ [`f${index}`]: 1 })));
  t.is(errors.length, 101);
  t.is(unknownFields.length, 100);
  const long = spec({ parts: { ['k'.repeat(100_000)]: {} } }).errors[0]?.field ?? '';
  t.true(long.length < 1000);
});

test('recursive schemas are decoded', (t) => {
  interface Tree {
    name?: string;
    children?: Tree[];
  }
  const tree: Schema<Tree> = s.message('x.Tree', '', {
    name: optional(1, s.string(), ''),
    get children() {
      return optional(2, s.list(tree), '');
    },
  });
  const { value, unknownFields } = decoderOf(tree)({ children: [{ x: 1, children: [{ name: 'leaf' }], name: 'mid' }] });
  t.is(JSON.stringify(value), '{"children":[{"name":"mid","children":[{"name":"leaf"}]}]}');
  t.deepEqual(unknownFields, ['children[0].x']);
});

test('null elements are zero values', (t) => {
  t.deepEqual(decoded({ tags: ['a', null] })['tags'], ['a', '']);
  t.deepEqual(decode({ metadata: { labels: { a: null } } }).value.metadata?.labels, { a: '' });
});

test('a decoder is made once', (t) => {
  t.is(decoderOf(Widget.schema), decode);
});
