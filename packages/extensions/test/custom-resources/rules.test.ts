import { readFileSync } from 'node:fs';
import type { FieldError, KubeObject } from '@keelson/core';
import type { JsonSchemaProps, ValidationRule } from '@keelson/kinds';
import test from 'ava';
import { checkRules } from '../../src/custom-resources/definition/check-rules.ts';
import { ruleChecksOf } from '../../src/custom-resources/schema/rules.ts';

const texts = (errors: readonly FieldError[] | undefined) =>
  (errors ?? []).map(({ field, message }) => `${field}: ${message}`);

function schemaWith(rules: ValidationRule[], spec: JsonSchemaProps = {}): JsonSchemaProps {
  return {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          min: { type: 'integer' },
          max: { type: 'integer' },
          mode: { type: 'string' },
          list: { type: 'array', items: { type: 'object', properties: { n: { type: 'integer' } } } },
        },
        'x-kubernetes-validations': rules,
        ...spec,
      },
    },
  };
}

const specOf = (spec: object) =>
  ({ apiVersion: 'example.com/v1', kind: 'X', metadata: { name: 'x' }, spec }) as KubeObject;

const cases: readonly (readonly [
  title: string,
  rule: ValidationRule,
  spec: object,
  old: object | undefined,
  errors: readonly string[],
])[] = [
  ['that holds', { rule: 'self.min <= self.max' }, { min: 1, max: 2 }, undefined, []],
  [
    'that fails',
    { rule: 'self.min <= self.max' },
    { min: 3, max: 2 },
    undefined,
    ['spec: Invalid value: "object": failed rule: self.min <= self.max'],
  ],
  [
    'with a message',
    { rule: 'self.min <= self.max', message: 'min is too large' },
    { min: 3, max: 2 },
    undefined,
    ['spec: Invalid value: "object": min is too large'],
  ],
  [
    'with a message expression',
    { rule: 'self.min <= self.max', messageExpression: "'min %d'.format([self.min])" },
    { min: 3, max: 2 },
    undefined,
    ['spec: Invalid value: "object": min 3'],
  ],
  [
    'with a field path and a reason',
    { rule: 'self.min <= self.max', fieldPath: '.min', reason: 'FieldValueForbidden', message: 'no' },
    { min: 3, max: 2 },
    undefined,
    ['spec.min: Forbidden: no'],
  ],
  [
    'that reads a missing field',
    { rule: 'self.min <= self.max' },
    { min: 3 },
    undefined,
    ['spec: Invalid value: "object": no such key: max evaluating rule: self.min <= self.max'],
  ],
  ['about the old value, without one', { rule: 'self.mode == oldSelf.mode' }, { mode: 'a' }, undefined, []],
  [
    'about the old value',
    { rule: 'self.mode == oldSelf.mode', message: 'immutable' },
    { mode: 'a' },
    { mode: 'b' },
    ['spec: Invalid value: "object": immutable'],
  ],
  [
    'about an optional old value',
    { rule: 'oldSelf.hasValue() || self.min > 0', optionalOldSelf: true, message: 'positive' },
    { min: 0 },
    undefined,
    ['spec: Invalid value: "object": positive'],
  ],
  [
    'about an optional old value that exists',
    { rule: 'oldSelf.hasValue() || self.min > 0', optionalOldSelf: true },
    { min: 0 },
    { min: 0, max: 1 },
    [],
  ],
  ['that fails for an unchanged value', { rule: 'self.min > 0' }, { min: 0 }, { min: 0 }, []],
];
for (const [title, rule, spec, old, errors] of cases) {
  test(`a rule ${title}`, (t) => {
    const schema = schemaWith([rule]);
    t.deepEqual(texts(checkRules(schema, 's', undefined)), []);
    t.deepEqual(texts(ruleChecksOf(schema)?.(specOf(spec), old && specOf(old))), errors);
  });
}

test('defaults must obey the rules of their schema, as new and as unchanged values', (t) => {
  const errorsOf = (rule: string, value: number) => {
    const min = { type: 'integer', default: value, 'x-kubernetes-validations': [{ rule, message: 'too small' }] };
    return texts(checkRules(schemaWith([], { properties: { min } }), 's', undefined));
  };
  const error = 's.properties[spec].properties[min].default: Invalid value: "integer": too small';
  t.deepEqual(errorsOf('self > 5', 3), [error]);
  t.deepEqual(errorsOf('self > 5', 6), []);
  t.deepEqual(errorsOf('self > oldSelf', 3), [error]);
});

test('a rule for values without a type is rejected', (t) => {
  const untyped = { 'x-kubernetes-preserve-unknown-fields': true };
  const rules = { 'x-kubernetes-validations': [{ rule: 'true' }] };
  const message =
    's.properties[spec].properties[min].x-kubernetes-validations: Internal error: internal error: failed to construct ' +
    'type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations';
  for (const min of [
    { ...untyped, ...rules },
    { type: 'array', items: untyped, ...rules },
  ])
    t.deepEqual(texts(checkRules(schemaWith([], { properties: { min } }), 's', undefined)), [message]);
});

test('a rule that exceeds the cost limit ends the evaluation', (t) => {
  const rule = 'self.mode.contains(self.mode + self.mode)';
  const mode = 'a'.repeat(20_000);
  const why = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run";
  t.deepEqual(texts(ruleChecksOf(schemaWith([{ rule }]))?.(specOf({ mode }), undefined)), [
    `spec: Invalid value: "object": ${why} due to call cost exceeds limit for rule: ${rule}`,
  ]);
});

test('rules of items, maps and the whole object have their paths', (t) => {
  const schema: JsonSchemaProps = {
    type: 'object',
    'x-kubernetes-validations': [{ rule: "self.metadata.name.startsWith('a')", message: 'name' }],
    properties: {
      list: {
        type: 'array',
        items: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self > 0', message: 'item' }] },
      },
      map: {
        type: 'object',
        additionalProperties: {
          type: 'string',
          'x-kubernetes-validations': [{ rule: 'self != ""', message: 'value' }],
        },
      },
    },
  };
  const object = { ...specOf({}), list: [1, 0], map: { k: '' } } as KubeObject;
  t.deepEqual(texts(ruleChecksOf(schema)?.(object, undefined)), [
    '<nil>: Invalid value: "object": name',
    'list[1]: Invalid value: "integer": item',
    'map[k]: Invalid value: "string": value',
  ]);
});

test('a schema without rules has no cost', (t) => {
  t.is(ruleChecksOf(schemaWith([])), undefined);
});

test('a definition with an invalid rule is rejected', (t) => {
  const errorsOf = (rule: ValidationRule) =>
    texts(checkRules(schemaWith([rule]), 's', undefined)).map((text) => text.split('\n')[0]);
  t.regex(
    errorsOf({ rule: 'self.nothing > 1' })[0] ?? '',
    /^s\.properties\[spec\]\.x-kubernetes-validations\[0\]\.rule: .*compilation failed: ERROR: <input>:1:5: undefined field 'nothing'/,
  );
  t.regex(errorsOf({ rule: 'self.min' })[0] ?? '', /cel expression must evaluate to a bool$/);
  t.regex(
    errorsOf({ rule: 'true', messageExpression: '1' })[0] ?? '',
    /\.messageExpression: .*must evaluate to a string$/,
  );
  t.regex(errorsOf({ rule: 'true', optionalOldSelf: true })[0] ?? '', /may not be set if oldSelf is not used in rule$/);
  const list = schemaWith([], {});
  const items = list.properties?.['spec']?.properties?.['list']?.items as JsonSchemaProps;
  items['x-kubernetes-validations'] = [{ rule: 'self == oldSelf' }];
  t.regex(
    texts(checkRules(list, 's', undefined))[0] ?? '',
    /oldSelf cannot be used on the uncorrelatable portion of the schema within s\.properties\[spec\]\.properties\[list\]$/,
  );
  t.deepEqual(checkRules(list, 's', structuredClone(list)), [], 'an unchanged schema is not checked again');
});

test('rules whose estimated cost exceeds the limits of Kubernetes are rejected with its messages', (t) => {
  // Recorded from ValidateCustomResourceDefinition of apiextensions-apiserver 0.34.2, with the values left out here.
  const file = new URL('../../../test/custom-resources/fixtures/rule-limits.jsonl', import.meta.url);
  const short = (text: string) =>
    text.split('\n')[0]?.replace(/Invalid value: .*?: (?=[a-z][A-Za-z ]+)/, 'Invalid value: ');
  for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
    const { schema, errors } = JSON.parse(line) as { schema: JsonSchemaProps; errors: readonly string[] };
    const found = texts(checkRules(schema, 'spec.validation.openAPIV3Schema', undefined));
    t.deepEqual(found.map(short), errors.map(short), JSON.stringify(schema));
  }
});
