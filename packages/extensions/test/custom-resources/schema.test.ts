import type { FieldError } from '@keelson/core';
import type { JsonSchemaProps } from '@keelson/kinds';
import test from 'ava';
import { checkWords } from '../../src/custom-resources/definition/check-schema.ts';
import { checkStructural } from '../../src/custom-resources/definition/check-structural.ts';
import { completeObject } from '../../src/custom-resources/schema/complete.ts';
import { validateEmbedded, validateListTypes } from '../../src/custom-resources/schema/list-types.ts';
import { SchemaNode } from '../../src/custom-resources/schema/schema-node.ts';
import { validateValue } from '../../src/custom-resources/schema/validate.ts';

const texts = (errors: readonly FieldError[]) => errors.map(({ field, message }) => `${field}: ${message}`);
const object = (properties: Record<string, JsonSchemaProps>, more: JsonSchemaProps = {}): JsonSchemaProps => ({
  type: 'object',
  properties,
  ...more,
});

/** Errors of `spec.v` by a schema. */
function errorsOf(v: unknown, schema: JsonSchemaProps, old?: unknown): string[] {
  const node = new SchemaNode(object({ spec: object({ v: schema }) }));
  const whole = (value: unknown) => ({ spec: { v: value } });
  return texts([
    ...validateValue(whole(v), node, '', old === undefined ? undefined : whole(old)),
    ...validateListTypes(whole(v), node),
    ...validateEmbedded(whole(v), node),
  ]);
}

const long = 'é'.repeat(4);
const values: readonly (readonly [
  title: string,
  schema: JsonSchemaProps,
  value: unknown,
  errors: readonly string[],
])[] = [
  ['a string', { type: 'string' }, 'x', []],
  [
    'a number for a string',
    { type: 'string' },
    5,
    ['spec.v: Invalid value: "integer": spec.v in body must be of type string: "integer"'],
  ],
  [
    'a fraction for an integer',
    { type: 'integer' },
    1.5,
    ['spec.v: Invalid value: "number": spec.v in body must be of type integer: "number"'],
  ],
  ['an integer for a number', { type: 'number' }, 3, []],
  ['a large integer', { type: 'integer' }, 2n ** 62n, []],
  ['null', { type: 'string' }, null, ['spec.v: Invalid value: "null": spec.v in body must be of type string: "null"']],
  ['null where it is allowed', { type: 'string', nullable: true }, null, []],
  [
    'a list for an object',
    { type: 'object' },
    [],
    ['spec.v: Invalid value: "array": spec.v in body must be of type object: "array"'],
  ],
  [
    'int-or-string with a boolean',
    { 'x-kubernetes-int-or-string': true },
    true,
    ['spec.v: Invalid value: "boolean": spec.v in body must be of type integer,string: "boolean"'],
  ],
  [
    'int-or-string with both',
    { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
    '80%',
    [],
  ],
  [
    'an enumeration',
    { type: 'string', enum: ['a', 'b'] },
    'c',
    ['spec.v: Unsupported value: "c": supported values: "a", "b"'],
  ],
  [
    'an enumeration of numbers',
    { type: 'integer', enum: [1, 2] },
    3,
    ['spec.v: Unsupported value: 3: supported values: "1", "2"'],
  ],
  [
    'minLength in characters',
    { type: 'string', minLength: 5 },
    long,
    [`spec.v: Invalid value: "${long}": spec.v in body should be at least 5 chars long`],
  ],
  ['maxLength in characters', { type: 'string', maxLength: 4 }, long, []],
  ['maxLength', { type: 'string', maxLength: 1 }, 'ab', ['spec.v: Too long: may not be more than 1 byte']],
  [
    'a pattern',
    { type: 'string', pattern: '^a+$' },
    'b',
    ['spec.v: Invalid value: "b": spec.v in body should match \'^a+$\''],
  ],
  ['a pattern in the syntax of RE2', { type: 'string', pattern: '(?i)^ABC\\z' }, 'abc', []],
  [
    'a minimum',
    { type: 'integer', minimum: 2 },
    1,
    ['spec.v: Invalid value: 1: spec.v in body should be greater than or equal to 2'],
  ],
  [
    'an exclusive minimum',
    { type: 'integer', minimum: 2, exclusiveMinimum: true },
    2,
    ['spec.v: Invalid value: 2: spec.v in body should be greater than 2'],
  ],
  [
    'a maximum',
    { type: 'number', maximum: 2.5 },
    3,
    ['spec.v: Invalid value: 3: spec.v in body should be less than or equal to 2.5'],
  ],
  [
    'an exclusive maximum',
    { type: 'number', maximum: 2, exclusiveMaximum: true },
    2,
    ['spec.v: Invalid value: 2: spec.v in body should be less than 2'],
  ],
  [
    'multipleOf',
    { type: 'integer', multipleOf: 3 },
    4,
    ['spec.v: Invalid value: 4: spec.v in body should be a multiple of 3'],
  ],
  ['multipleOf of fractions', { type: 'number', multipleOf: 0.1 }, 0.3, []],
  [
    'minItems',
    { type: 'array', items: { type: 'string' }, minItems: 1 },
    [],
    ['spec.v: Invalid value: 0: spec.v in body should have at least 1 items'],
  ],
  [
    'maxItems',
    { type: 'array', items: { type: 'string' }, maxItems: 1 },
    ['a', 'b'],
    ['spec.v: Too many: 2: must have at most 1 item'],
  ],
  [
    'items',
    { type: 'array', items: { type: 'string' } },
    ['a', 1],
    ['spec.v[1]: Invalid value: "integer": spec.v[1] in body must be of type string: "integer"'],
  ],
  [
    'minProperties',
    { type: 'object', additionalProperties: true, minProperties: 1 },
    {},
    ['spec.v: Invalid value: 0: spec.v in body should have at least 1 properties'],
  ],
  [
    'maxProperties',
    { type: 'object', additionalProperties: true, maxProperties: 1 },
    { a: 1, b: 2 },
    ['spec.v: Too many: 2: must have at most 1 item'],
  ],
  [
    'values of a map',
    { type: 'object', additionalProperties: { type: 'integer' } },
    { a: 'x' },
    ['spec.v.a: Invalid value: "string": spec.v.a in body must be of type integer: "string"'],
  ],
  ['required', object({ a: { type: 'string' } }, { required: ['a'] }), {}, ['spec.v.a: Required value']],
  [
    'oneOf without a match',
    { type: 'integer', oneOf: [{ minimum: 5 }, { maximum: 1 }] },
    3,
    [
      '<nil>: Invalid value: "": "spec.v" must validate one and only one schema (oneOf). Found none valid',
      'spec.v: Invalid value: 3: spec.v in body should be greater than or equal to 5',
    ],
  ],
  [
    'oneOf with two matches',
    { type: 'integer', oneOf: [{ minimum: 1 }, { minimum: 2 }] },
    3,
    ['<nil>: Invalid value: "": "spec.v" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
  ],
  [
    'anyOf',
    { type: 'integer', anyOf: [{ minimum: 5 }, { minimum: 6 }] },
    3,
    [
      '<nil>: Invalid value: "": "spec.v" must validate at least one schema (anyOf)',
      'spec.v: Invalid value: 3: spec.v in body should be greater than or equal to 5',
    ],
  ],
  [
    'allOf',
    { type: 'integer', allOf: [{ minimum: 5 }, { minimum: 1 }] },
    3,
    [
      'spec.v: Invalid value: 3: spec.v in body should be greater than or equal to 5',
      '<nil>: Invalid value: "": "spec.v" must validate all the schemas (allOf)',
    ],
  ],
  [
    'not',
    { type: 'integer', not: { minimum: 1 } },
    3,
    ['<nil>: Invalid value: "": "spec.v" must not validate the schema (not)'],
  ],
  [
    'a set',
    { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
    ['a', 'b', 'a', 'a'],
    ['spec.v[2]: Duplicate value: "a"'],
  ],
  [
    'a map',
    {
      type: 'array',
      items: object({ k: { type: 'string' } }),
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['k'],
    },
    [{ k: 'a' }, { k: 'a' }],
    ['spec.v[1]: Duplicate value: {"k":"a"}'],
  ],
  [
    'an embedded object without a type',
    { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
    { metadata: { name: 'x' } },
    ['spec.v.apiVersion: Required value', 'spec.v.kind: Required value'],
  ],
  [
    'an embedded object',
    { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
    { apiVersion: 'v1', kind: 'Pod', metadata: { labels: { 'a b': '' } } },
    [
      "spec.v.metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  ],
];

for (const [title, schema, value, errors] of values) {
  test(`validation: ${title}`, (t) => {
    t.deepEqual(errorsOf(value, schema), errors);
  });
}

const formats: readonly (readonly [format: string, valid: readonly string[], invalid: readonly string[]])[] = [
  [
    'date-time',
    ['2024-02-29T12:00:00Z', '2024-01-01T00:00:00.123+02:00', '2020-01-01T00:00:00,5Z'],
    ['2023-02-29T12:00:00Z', 'now', '2020-01-01T00:00:00', '2020-01-01T00:00:00+0100', '2020-01-01T00:00:60Z'],
  ],
  ['date', ['2024-02-29'], ['2023-02-29', '2024-13-01']],
  ['duration', ['1h30m', '5s', '2 days', 'P1D', 'PT1H', '1M', '1.h', '0'], ['fast', '5', '1y', '1 month', 'PT']],
  ['byte', ['aGk='], ['*', 'aGk=\n', '']],
  ['uuid', ['123e4567-e89b-12d3-a456-426614174000'], ['123']],
  ['ipv4', ['10.0.0.1', '01.2.3.4', '::ffff:1.2.3.4'], ['10.0.0.256', '::1', '1.2.3.4 ']],
  ['ipv6', ['::1', '::ffff:1.2.3.4'], ['10.0.0.1', 'fe80::1%eth0']],
  ['cidr', ['10.0.0.0/8', 'fd00::/8', '10.0.0.0/08', '010.0.0.0/8'], ['10.0.0.0/33', '10.0.0.0', '::/129']],
  [
    'hostname',
    ['example.com', 'localhost', '1host', '日本.jp'],
    ['-a.example', 'a_b', 'foo.com.', '1.2', 'foo.c', 'a.b1', 'a-b.c-d'],
  ],
  ['email', ['a@example.com', '"x y"@b.c', 'A <a@b>'], ['a', 'a@@b', 'a@b..c', 'a b@c.d']],
  [
    'uri',
    ['https://example.com/x', '/path', 'http://', '/x y', 'mailto:a@b', 'http://a:80/x?y'],
    ['a b', 'path', 'http://a b', 'http://[::1', 'http://a:b/', '/%z', '?a'],
  ],
  ['mac', ['00:11:22:33:44:55', '000000000000'], ['00:11']],
  ['isbn', ['978-0321751041', '0321751043'], ['0321751044']],
  ['hexcolor', ['#fff'], ['#ff']],
  ['rgbcolor', ['rgb( 1 , 2 , 255 )'], ['rgb(1,2,256)', 'rgb(01,2,3)']],
  ['ssn', ['123-45-6789', '123 45 6789'], ['123456789']],
  ['creditcard', ['4111 1111 1111 1111'], ['4111 1111 1111 1112']],
  ['k8s-short-name', ['a-b', 'a.b'], []],
  ['no-such-format', ['anything'], []],
];
for (const [format, valid, invalid] of formats) {
  test(`the format ${format}`, (t) => {
    for (const text of valid) t.deepEqual(errorsOf(text, { type: 'string', format }), [], text);
    for (const text of invalid) {
      const expected = `spec.v: Invalid value: ${JSON.stringify(text)}: spec.v in body must be of type ${format}: ${JSON.stringify(text)}`;
      t.deepEqual(errorsOf(text, { type: 'string', format }), [expected]);
    }
  });
}

test('values that an update does not change are not validated again', (t) => {
  const item = object({ k: { type: 'string' }, n: { type: 'integer', maximum: 5 } });
  const list: JsonSchemaProps = {
    type: 'array',
    items: item,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['k'],
  };
  t.deepEqual(
    errorsOf(
      [
        { k: 'a', n: 9 },
        { k: 'b', n: 1 },
      ],
      list,
      [{ k: 'a', n: 9 }],
    ),
    [],
  );
  t.is(errorsOf([{ k: 'a', n: 8 }], list, [{ k: 'a', n: 9 }]).length, 1);
  t.is(
    errorsOf([9, 1], { type: 'array', items: { type: 'integer', maximum: 5 } }, [9]).length,
    1,
    'atomic lists have no correlation',
  );
});

test('an object gets the defaults of its schema and is pruned by it', (t) => {
  const node = new SchemaNode(
    object({
      spec: object({
        replicas: { type: 'integer', default: 1 },
        mode: { type: 'string', nullable: true, default: 'fast' },
        plain: { type: 'string' },
        nested: object({ on: { type: 'boolean', default: true } }, { default: {} }),
        list: { type: 'array', items: object({ p: { type: 'string', default: 'TCP' } }) },
        map: { type: 'object', additionalProperties: object({ d: { type: 'integer', default: 2 } }) },
        open: object({ known: object({}) }, { 'x-kubernetes-preserve-unknown-fields': true }),
        template: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { spec: object({}) } },
      }),
    }),
  );
  const unknown: string[] = [];
  const completed = completeObject(
    {
      kind: 'K',
      metadata: { name: 'x' },
      extra: 1,
      spec: {
        replicas: null,
        mode: null,
        plain: null,
        list: [{}, { p: 'UDP', q: 1 }],
        map: { a: {} },
        open: { any: { thing: [1] }, known: { gone: 1 } },
        template: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', bad: 1 }, spec: { x: 1 } },
      },
    },
    node,
    (path) => unknown.push(path),
  );
  t.deepEqual(completed, {
    spec: {
      replicas: 1,
      mode: null,
      list: [{ p: 'TCP' }, { p: 'UDP' }],
      map: { a: { d: 2 } },
      open: { any: { thing: [1] }, known: {} },
      template: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: {} },
      nested: { on: true },
    },
  });
  t.deepEqual(unknown, [
    'extra',
    'spec.list[1].q',
    'spec.open.known.gone',
    'spec.template.metadata.bad',
    'spec.template.spec.x',
  ]);
});

const schemas: readonly (readonly [title: string, schema: JsonSchemaProps, errors: readonly string[]])[] = [
  ['without a type', {}, ['s.type: Required value: must not be empty at the root']],
  ['of another type', { type: 'string' }, ['s.type: Invalid value: "string": must be object at the root']],
  [
    'with a field without a type',
    object({ a: {} }),
    ['s.properties[a].type: Required value: must not be empty for specified object fields'],
  ],
  [
    'with items without a type',
    object({ a: { type: 'array', items: {} } }),
    ['s.properties[a].items.type: Required value: must not be empty for specified array items'],
  ],
  [
    'with a list without items',
    object({ a: { type: 'array' } }),
    ['s.properties[a].items: Required value: must be specified'],
  ],
  [
    'with an unknown type',
    object({ a: { type: 'text' } }),
    [
      's.properties[a].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"',
    ],
  ],
  [
    'with additionalProperties at the root',
    { type: 'object', additionalProperties: true },
    ['s.additionalProperties: Forbidden: must not be used at the root'],
  ],
  [
    'with both kinds of properties',
    object({ a: object({ b: { type: 'string' } }, { additionalProperties: { type: 'string' } }) }),
    ['s.properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive'],
  ],
  [
    'with a restriction of the metadata',
    object({ metadata: object({ labels: { type: 'object' } }) }),
    [
      's.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified',
    ],
  ],
  ['with a restriction of the name', object({ metadata: object({ name: { type: 'string', pattern: '^a' } }) }), []],
  [
    'with a type in an alternative',
    object({ a: { type: 'string', anyOf: [{ type: 'string' }] } }),
    ['s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural'],
  ],
  [
    'with a field of an alternative alone',
    object({}, { anyOf: [{ properties: { a: { minimum: 1 } } }] }),
    ['s.properties[a]: Required value: because it is defined in s.anyOf[0].properties[a]'],
  ],
  [
    'with a wrong pattern',
    object({ a: { type: 'string', pattern: '(' } }),
    [
      's.properties[a].pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ): `(`',
    ],
  ],
  [
    'with a reference',
    object({ a: { type: 'object', $ref: '#/x' } }),
    ['s.properties[a].$ref: Forbidden: $ref is not supported'],
  ],
  [
    'with uniqueItems',
    object({ a: { type: 'array', items: { type: 'string' }, uniqueItems: true } }),
    [
      's.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
    ],
  ],
  [
    'with a default of a wrong type',
    object({ a: { type: 'integer', default: 'x' } }),
    ['s.properties[a].default: Invalid value: "string":  in body must be of type integer: "string"'],
  ],
  [
    'with a default with a wrong field',
    object({ a: object({ b: { type: 'integer', minimum: 3 } }, { default: { b: 1 } }) }),
    ['s.properties[a].default.b: Invalid value: 1: b in body should be greater than or equal to 3'],
  ],
  [
    'with a set with a repeated item as default',
    object({ a: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set', default: ['b', 'b'] } }),
    [],
  ],
  [
    'with a boolean as default of an int-or-string',
    object({ a: { 'x-kubernetes-int-or-string': true, default: true } }),
    [],
  ],
  [
    'with a field path of a rule without a leading dot',
    object({}, { 'x-kubernetes-validations': [{ rule: 'true', fieldPath: 'a' }] }),
    ['s.x-kubernetes-validations[0].fieldPath: Invalid value: "a": must be a valid path'],
  ],
  [
    'with unknown fields in a default',
    object({ a: object({}, { default: { b: 1 } }) }),
    ['s.properties[a].default: Invalid value: {"b":1}: must not have unknown fields'],
  ],
  [
    'with a map list without keys',
    object({ a: { type: 'array', 'x-kubernetes-list-type': 'map', items: object({}) } }),
    ['s.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map'],
  ],
  [
    'with a map list with an optional key',
    object({
      a: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['k'],
        items: object({ k: { type: 'string' } }),
      },
    }),
    [
      's.properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
    ],
  ],
  [
    'with preserve false',
    object({ a: { type: 'object', 'x-kubernetes-preserve-unknown-fields': false } }),
    ['s.properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined'],
  ],
  [
    'with an int-or-string of both types',
    object({ a: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] } }),
    [],
  ],
];
for (const [title, schema, errors] of schemas) {
  test(`a definition with a schema ${title}`, (t) => {
    t.deepEqual(texts([...checkStructural(schema, 's'), ...checkWords(schema, 's')]), errors);
  });
}

test('unknown fields in the metadata of an embedded object are reported, except in defaults', (t) => {
  const template: JsonSchemaProps = {
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    'x-kubernetes-preserve-unknown-fields': true,
  };
  const value = { apiVersion: 'v1', kind: 'K', metadata: { name: 'x', foo: 1 }, other: 1 };
  const unknown: string[] = [];
  const node = new SchemaNode(object({ spec: object({ template }) }));
  const completed = completeObject({ spec: { template: value } }, node, (path) => unknown.push(path));
  t.deepEqual(completed, { spec: { template: { ...value, metadata: { name: 'x' } } } });
  t.deepEqual(unknown, ['spec.template.metadata.foo']);
  t.deepEqual(texts(checkWords(object({ spec: object({ template: { ...template, default: value } }) }), 's')), []);
});

test('malicious schemas and values are rejected in bounded time', (t) => {
  const alternatives: JsonSchemaProps = {
    type: 'integer',
    anyOf: Array.from({ length: 5000 }, (_, i) => ({ minimum: i + 10 })),
  };
  const many = { type: 'array', items: alternatives };
  t.true(
    errorsOf(
      Array.from({ length: 10_000 }, () => 1),
      many,
    ).some((text) => text.includes('takes too long') || text.includes('anyOf')),
  );
  const slow = { type: 'string', pattern: '^(a+)+$' };
  t.is(errorsOf(`${'a'.repeat(100_000)}b`, slow).length, 1);
  t.true(errorsOf('a'.repeat(3_000_000), slow)[0]?.includes('is too long to be compared with'));
  let deep: JsonSchemaProps = { type: 'string' };
  for (let i = 0; i < 150; i++) deep = object({ a: deep });
  t.deepEqual(checkStructural(deep, 's'), []);
  const patterns = Object.fromEntries(
    Array.from({ length: 2000 }, (_, i) => [`p${i}`, { type: 'string', pattern: '(a{1,999}){0,1}' }]),
  );
  t.true(texts(checkStructural(object(patterns), 's')).some((text) => text.includes('may not be larger than')));
});
