import test from 'ava';
import { defineKind } from '../../src/kind/define-kind.ts';
import { objectMetaSchema } from '../../src/kind/object-meta-schema.ts';
import { always, inline, optional, type Schema, s } from '../../src/kind/schema.ts';
import { childSchema, jsonFields, messageNode } from '../../src/kind/schema-walk.ts';
import { typeMetaFields } from '../../src/kind/type-meta-fields.ts';
import { probeSchema, Widget, widgetSchema } from './sample-kinds.ts';

const minimal = { group: 'example.com', version: 'v1', kind: 'Policy', schema: s.message('x.y.Policy', '', {}) };

test('names, verbs, list kind, scope and selectable fields follow from the kind', (t) => {
  const kind = defineKind(minimal);
  t.deepEqual(kind.names, { plural: 'policies', singular: 'policy', shortNames: [], categories: [] });
  t.deepEqual(kind.verbs, ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']);
  t.is(kind.listKind, 'PolicyList');
  t.is(kind.apiVersion, 'example.com/v1');
  t.is(kind.scope, 'Namespaced');
  t.true(kind.structural);
  t.deepEqual([...kind.selectableFields.keys()], ['metadata.name', 'metadata.namespace']);
  t.deepEqual([...defineKind({ ...minimal, scope: 'Cluster' }).selectableFields.keys()], ['metadata.name']);
  t.deepEqual(defineKind({ ...minimal, verbs: ['watch', 'get', 'create'] }).verbs, ['create', 'get', 'watch']);
  t.deepEqual(kind.strategy, { generation: 'none', statusSubresource: false });
});

test('plurals follow English rules', (t) => {
  const plural = (kind: string) => defineKind({ ...minimal, kind }).names.plural;
  t.deepEqual(['Ingress', 'Gateway', 'Widget', 'Box', 'Branch'].map(plural), [
    'ingresses',
    'gateways',
    'widgets',
    'boxes',
    'branches',
  ]);
});

test('the schema begins with kind, apiVersion and metadata', (t) => {
  t.deepEqual(Object.keys(messageNode(Widget.schema)?.fields ?? {}), [
    'kind',
    'apiVersion',
    'metadata',
    'spec',
    'status',
  ]);
  t.is(messageNode(Widget.schema)?.fields['metadata']?.number, 1);
});

test('a message that also stands inside other objects has these fields already and is used as it is', (t) => {
  const schema = s.message('x.y.Policy', '', {
    ...typeMetaFields,
    metadata: optional(1, objectMetaSchema, ''),
    spec: optional(2, s.message('x.y.PolicySpec', '', {}), ''),
  });
  t.is(defineKind({ ...minimal, schema }).schema.node, schema.node);
});

test('selectable fields read the object', (t) => {
  const object = { metadata: { name: 'a', namespace: 'n' }, spec: { size: 1, color: 'red' } };
  t.is(Widget.selectableFields.get('metadata.name')?.(object), 'a');
  t.is(Widget.selectableFields.get('metadata.namespace')?.(object), 'n');
  t.is(Widget.selectableFields.get('spec.color')?.(object), 'red');
  t.is(Widget.selectableFields.get('metadata.name')?.({ spec: { size: 0 } }), '');
});

test('the status is isolated exactly when the subresource status is declared', (t) => {
  t.is(Widget.strategy.statusSubresource, true);
  t.is(defineKind({ ...minimal, schema: widgetSchema }).strategy.statusSubresource, false);
});

test('a generation is kept for kinds with a spec, unless the strategy states otherwise', (t) => {
  const options = { ...minimal, schema: widgetSchema };
  t.is(defineKind(options).strategy.generation, 'spec');
  t.is(defineKind({ ...options, strategy: { generation: 'none' } }).strategy.generation, 'none');
  t.is(defineKind({ ...options, virtual: { create: (object) => object } }).strategy.generation, 'none');
});

test('the definition is frozen through', (t) => {
  t.true(Object.isFrozen(Widget));
  for (const part of [
    Widget.names,
    Widget.names.shortNames,
    Widget.verbs,
    Widget.columns,
    Widget.strategy,
    Widget.subresources,
  ]) {
    t.true(Object.isFrozen(part));
  }
});

test('protobuf form needs a number on every reachable field but the JSON-only ones', (t) => {
  t.true(Widget.protobuf);
  const inner = s.message('x.y.Inner', '', { a: optional(undefined, s.string(), '') });
  const of = (schema: typeof inner | ReturnType<typeof s.any>) =>
    defineKind({ ...minimal, schema: s.message('x.y.Policy', '', { list: optional(2, s.list(s.map(schema)), '') }) })
      .protobuf;
  t.false(of(inner));
  t.true(of(s.message('x.y.Embedded', '', { ...typeMetaFields, a: optional(1, s.string(), '') })));
});

test('a message shared by several kinds decides about the protobuf form of each', (t) => {
  const withNumbers = s.message('x.y.Complete', '', { a: optional(1, s.string(), '') });
  const without = s.message('x.y.Incomplete', '', { a: optional(undefined, s.string(), '') });
  const protobuf = (...fields: Schema<unknown>[]) =>
    defineKind({
      ...minimal,
      schema: s.message(
        'x.y.Whole',
        '',
        Object.fromEntries(fields.map((schema, i) => [`f${i}`, optional(i + 2, schema, '')])),
      ),
    }).protobuf;
  t.deepEqual([protobuf(without), protobuf(withNumbers, without), protobuf(without)], [false, false, false]);
  t.deepEqual([protobuf(withNumbers), protobuf(withNumbers)], [true, true]);
  t.false(protobuf(withNumbers, without));
});

const f = (number: number) => optional(number, s.string(), '');

const withStatus = { ...minimal, schema: widgetSchema, subresources: [{ type: 'status', name: 'status' }] } as const;

const contradictions: readonly [string, () => unknown, RegExp][] = [
  [
    'two fields share a number',
    () => defineKind({ ...minimal, schema: s.message('x.y.A', '', { a: f(2), b: f(2) }) }),
    /a and b share the number 2/,
  ],
  [
    'metadata has number 1',
    () => defineKind({ ...minimal, schema: s.message('x.y.A', '', { a: f(1) }) }),
    /metadata and a share the number 1/,
  ],
  [
    'a nested message repeats a number',
    () =>
      defineKind({
        ...minimal,
        schema: s.message('x.y.A', '', { a: optional(2, s.list(s.message('x.y.B', '', { b: f(3), c: f(3) })), '') }),
      }),
    /x\.y\.B: fields b and c share/,
  ],
  [
    'a number is out of range',
    () => defineKind({ ...minimal, schema: s.message('x.y.A', '', { a: f(19_500) }) }),
    /19500 is not a valid field number/,
  ],
  [
    'metadata is declared',
    () => defineKind({ ...minimal, schema: s.message('x.y.A', '', { metadata: f(2) }) }),
    /metadata is added by itself/,
  ],
  [
    'an inlined field collides',
    () => defineKind({ ...minimal, schema: s.message('x.y.A', '', { port: f(2), i: inline(3, probeSchema) }) }),
    /contains the field port again/,
  ],
  ['the schema is no message', () => defineKind({ ...minimal, schema: s.string() }), /must be a message/],
  ['the plural is empty', () => defineKind({ ...minimal, names: { plural: '' } }), /the name "" must be/],
  [
    'the plural has capitals',
    () => defineKind({ ...minimal, names: { plural: 'Policies' } }),
    /must be a lower-case word/,
  ],
  ['the group is no DNS name', () => defineKind({ ...minimal, group: 'Example_com' }), /group must be/],
  ['the version is empty', () => defineKind({ ...minimal, version: '' }), /version must be/],
  ['the kind is no word', () => defineKind({ ...minimal, kind: 'a/b' }), /kind must consist of letters/],
  ['a verb repeats', () => defineKind({ ...minimal, verbs: ['get', 'get'] }), /verb get is given twice/],
  [
    'status subresource without status',
    () => defineKind({ ...minimal, subresources: [{ type: 'status', name: 'status' }] }),
    /needs a field status/,
  ],
  [
    'statusSubresource without the subresource',
    () => defineKind({ ...minimal, schema: widgetSchema, strategy: { statusSubresource: true } }),
    /statusSubresource is true, but no subresource status is declared, so that no request could set the status$/,
  ],
  [
    'the subresource without statusSubresource',
    () => defineKind({ ...withStatus, strategy: { statusSubresource: false } }),
    /statusSubresource is false, but the subresource status is declared$/,
  ],
  [
    'a status of another type of subresource',
    () => defineKind({ ...withStatus, subresources: [{ type: 'replace', name: 'status', apply: () => {} }] }),
    /the subresource status has the type replace; its type must be status$/,
  ],
  [
    'a check of status writes without the subresource',
    () => defineKind({ ...minimal, schema: widgetSchema, strategy: { validateStatusUpdate: () => [] } }),
    /strategy\.validateStatusUpdate needs the subresource status$/,
  ],
  [
    'a status that is kept on create without the subresource',
    () => defineKind({ ...minimal, schema: widgetSchema, strategy: { keepsStatusOnCreate: true } }),
    /strategy\.keepsStatusOnCreate needs the subresource status$/,
  ],
  [
    'create on update without the verb update',
    () => defineKind({ ...minimal, verbs: ['create', 'get'], strategy: { allowCreateOnUpdate: true } }),
    /strategy\.allowCreateOnUpdate needs the verbs create and update$/,
  ],
  [
    'a generation of what is not stored',
    () => defineKind({ ...minimal, strategy: { generation: 'spec' }, virtual: { create: (object) => object } }),
    /a virtual kind has no generation/,
  ],
  [
    'another generation rule than that of the storage kind',
    () =>
      defineKind({
        ...withStatus,
        version: 'v2',
        strategy: { generation: 'none' },
        storage: { kind: Widget, toStorage: (o) => o, fromStorage: (o) => o as never, isRelabel: () => true },
      }),
    /strategy\.generation is none, but spec for Widget of [^ ]+, as which it is stored$/,
  ],
  [
    'scale without spec',
    () =>
      defineKind({
        ...minimal,
        subresources: [
          { type: 'projection', name: 'scale', bodyKind: minimal, schema: s.any(), read: () => ({}), write: () => {} },
        ],
      }),
    /needs a field spec/,
  ],
  [
    'stored as a kind of another scope',
    () =>
      defineKind({
        ...minimal,
        scope: 'Cluster',
        storage: { kind: Widget, toStorage: (o) => o, fromStorage: (o) => o, isRelabel: () => true },
      }),
    /another scope/,
  ],
  [
    'a field named __proto__',
    () => defineKind({ ...minimal, schema: s.message('x.y.A', '', { ['__proto__']: f(2) }) }),
    /cannot be the name/,
  ],
];

for (const [title, declare, message] of contradictions) {
  test(`a contradiction is refused: ${title}`, (t) => {
    t.throws(declare, { message });
  });
}

test('childSchema descends into inlined messages and maps only', (t) => {
  t.is(childSchema(probeSchema, 'port')?.node.type, 'intOrString');
  t.is(childSchema(probeSchema, 'handler'), undefined);
  t.is(childSchema(s.map(s.bool()), 'anything')?.node.type, 'bool');
  t.is(childSchema(s.raw(), 'x'), undefined);
  t.is(childSchema(probeSchema, 'constructor'), undefined);
  const message = messageNode(probeSchema);
  t.deepEqual(message && [...jsonFields(message).keys()], ['command', 'port', 'periodSeconds']);
});

test('always fields may not be missing from the static type of a kind', (t) => {
  const schema = s.message('x.y.A', '', { a: always(2, s.string(), '') });
  const kind = defineKind({ ...minimal, schema, selectableFields: [['a', (object) => object.a.toUpperCase()]] });
  t.is(kind.selectableFields.get('a')?.({ a: 'x' }), 'X');
});
