import test from 'ava';
import {
  CelCompileError,
  CostBudget,
  compileExpression,
  escapeName,
  schemaType,
  type TypeSchema,
} from '../../src/cel/index.ts';

const strings = { type: 'array', items: { type: 'string' } };
const ports = {
  type: 'array',
  items: { type: 'object', properties: { name: { type: 'string' }, port: { type: 'integer' } } },
};
const schema: TypeSchema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        replicas: { type: 'integer' },
        ratio: { type: 'number' },
        at: { type: 'string', format: 'date-time' },
        day: { type: 'string', format: 'date' },
        wait: { type: 'string', format: 'duration' },
        data: { type: 'string', format: 'byte' },
        port: { 'x-kubernetes-int-or-string': true },
        labels: { type: 'object', additionalProperties: { type: 'string' } },
        list: strings,
        set: { ...strings, 'x-kubernetes-list-type': 'set' },
        ports: { ...ports, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
        'a-b.c/d__e': { type: 'string' },
        namespace: { type: 'string' },
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as TypeSchema,
        unknown: { 'x-kubernetes-preserve-unknown-fields': true } as TypeSchema,
        $odd: { type: 'string' },
        template: { type: 'object', 'x-kubernetes-embedded-resource': true },
      },
    },
  },
};
const self = schemaType(schema, true);
const object = {
  metadata: { name: 'x', labels: {} },
  spec: {
    replicas: 3,
    ratio: 2,
    at: '2024-01-01T00:00:00Z',
    day: '2024-01-02',
    wait: '90s',
    data: 'aGk=',
    port: '80%',
    labels: { app: 'web' },
    list: ['a', 'b'],
    set: ['a', 'b'],
    ports: [
      { name: 'x', port: 1 },
      { name: 'y', port: 2 },
    ],
    'a-b.c/d__e': 'odd',
    namespace: 'ns',
    free: { a: 1 },
    template: { kind: 'Pod', metadata: { name: 'inner' } },
  },
};
const oldSelf = {
  ...object,
  spec: { ...object.spec, list: ['b', 'a'], set: ['b', 'a'], ports: [...object.spec.ports].reverse() },
};

function evaluate(source: string): unknown {
  if (self === undefined) return undefined;
  const expression = compileExpression(source, { variables: { self, oldSelf: self } });
  return expression.evaluate({ self: object, oldSelf }, new CostBudget());
}

const truths = [
  'self.spec.replicas + 1 == 4',
  'type(self.spec.ratio) == double && self.spec.ratio / 4.0 == 0.5',
  'self.spec.at < self.spec.day && self.spec.at.getFullYear() == 2024',
  "self.spec.wait == duration('1m30s')",
  "self.spec.data == b'hi' && string(self.spec.data) == 'hi'",
  "type(self.spec.port) == string && self.spec.port == '80%'",
  "self.spec.labels['app'] == 'web' && self.spec.labels.app == 'web'",
  'self.spec.list != oldSelf.spec.list',
  'self.spec.set == oldSelf.spec.set',
  'self.spec.ports == oldSelf.spec.ports',
  "(self.spec.set + ['b', 'c']).size() == 3",
  "(self.spec.list + ['b', 'c']).size() == 4",
  '(self.spec.ports + [oldSelf.spec.ports[0]]).size() == 2',
  "self.spec.a__dash__b__dot__c__slash__d__underscores__e == 'odd'",
  "self.spec.__namespace__ == 'ns'",
  "has(self.spec.namespace) && self.spec.namespace == 'ns'",
  "has(self.metadata.name) && self.metadata.name == 'x'",
  "self.spec.template.metadata.name == 'inner'",
  'has(self.spec.free)',
];
for (const source of truths) test(`typed objects: ${source}`, (t) => t.is(evaluate(source), true));

const mistakes: readonly (readonly [source: string, message: RegExp])[] = [
  ['self.spec.missing', /undefined field 'missing'/],
  ["self.spec.replicas == 'x'", /found no matching overload for '_==_' applied to '\(int, string\)'/],
  ['self.spec.free.a == 1', /undefined field 'a'/],
  ['self.spec.unknown == 1', /undefined field 'unknown'/],
  ['self.metadata.labels', /undefined field 'labels'/],
  ['self.spec.list.all(x, x > 1)', /found no matching overload for '_>_' applied to '\(string, int\)'/],
];
for (const [source, message] of mistakes) {
  test(`types are checked: ${source}`, (t) => {
    t.throws(() => evaluate(source), { instanceOf: CelCompileError, message });
  });
}

test('an expression that selects a field that is not set fails', (t) => {
  const type = schemaType({ type: 'object', properties: { a: { type: 'string' } } });
  if (type === undefined) return t.fail();
  const expression = compileExpression("self.a == ''", { variables: { self: type } });
  t.throws(() => expression.evaluate({ self: {} }), { message: 'no such key: a' });
});

test('names that cannot be escaped are not fields', (t) => {
  t.is(escapeName('$ref'), undefined);
  t.is(escapeName('1st'), undefined);
  t.is(escapeName(''), undefined);
  t.is(escapeName('x-y'), 'x__dash__y');
  t.is(escapeName('while'), '__while__');
});
