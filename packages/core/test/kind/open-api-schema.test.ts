import test from 'ava';
import { componentName } from '../../src/kind/component-name.ts';
import { decoderOf } from '../../src/kind/decoder.ts';
import { defineKind } from '../../src/kind/define-kind.ts';
import type { JsonSchema } from '../../src/kind/json-schema.ts';
import { objectMetaSchema } from '../../src/kind/object-meta-schema.ts';
import { jsonSchemaOf, openApiSchemas } from '../../src/kind/open-api-schema.ts';
import { optional, type Schema, s } from '../../src/kind/schema.ts';
import { messageNode } from '../../src/kind/schema-walk.ts';
import { Widget } from './sample-kinds.ts';

const metaPrefix = 'io.k8s.apimachinery.pkg.apis.meta.v1';
const components = openApiSchemas([Widget]);
const spec = components[componentName('com.example.v1.WidgetSpec')];

function property(name: string): JsonSchema | undefined {
  return spec?.properties?.[name];
}

function references(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(references);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => (key === '$ref' ? [String(inner)] : references(inner)));
}

test('component names turn the domain around', (t) => {
  t.is(componentName('k8s.io.api.core.v1.Pod'), 'io.k8s.api.core.v1.Pod');
  t.is(componentName('Pod'), 'Pod');
});

test('every reference leads somewhere', (t) => {
  const all = references(components);
  t.true(all.length > 20);
  for (const reference of all) t.true(reference.replace('#/components/schemas/', '') in components, reference);
});

test('the kind and its list are top-level components, once', (t) => {
  const kind = components[componentName('com.example.v1.Widget')];
  t.deepEqual(kind?.['x-kubernetes-group-version-kind'], [{ group: 'example.com', version: 'v1', kind: 'Widget' }]);
  t.deepEqual(Object.keys(kind?.properties ?? {}), ['kind', 'apiVersion', 'metadata', 'spec', 'status']);
  t.deepEqual(kind?.properties?.['metadata']?.allOf, [{ $ref: `#/components/schemas/${metaPrefix}.ObjectMeta` }]);
  const list = components[componentName('com.example.v1.WidgetList')];
  t.deepEqual(list?.['x-kubernetes-group-version-kind'], [{ group: 'example.com', version: 'v1', kind: 'WidgetList' }]);
  t.deepEqual(list?.required, ['items']);
  t.deepEqual(list?.properties?.['items']?.items, {
    $ref: `#/components/schemas/${componentName('com.example.v1.Widget')}`,
  });
});

test('ObjectMeta is complete', (t) => {
  const meta = components[`${metaPrefix}.ObjectMeta`];
  t.deepEqual(Object.keys(meta?.properties ?? {}), Object.keys(messageNode(objectMetaSchema)?.fields ?? {}));
  t.is(meta?.properties?.['ownerReferences']?.['x-kubernetes-patch-merge-key'], 'uid');
  t.is(meta?.properties?.['finalizers']?.['x-kubernetes-patch-strategy'], 'merge');
  for (const [name, schema] of Object.entries(meta?.properties ?? {})) t.truthy(schema.description, name);
  t.deepEqual(components[`${metaPrefix}.OwnerReference`]?.required, ['apiVersion', 'kind', 'name', 'uid']);
  t.is(components[`${metaPrefix}.OwnerReference`]?.['x-kubernetes-map-type'], 'atomic');
});

test('types and formats are those of published documents', (t) => {
  const bare = (name: string) => {
    const { description, ...rest } = property(name) ?? {};
    t.truthy(description);
    return rest;
  };
  t.deepEqual(bare('size'), { type: 'integer', format: 'int32' });
  t.deepEqual(bare('big'), { type: 'integer', format: 'int64' });
  t.deepEqual(bare('weight'), { type: 'number', format: 'double' });
  t.deepEqual(bare('key'), { type: 'string', format: 'byte' });
  t.deepEqual(bare('paused'), { type: 'boolean' });
  t.deepEqual(bare('color'), { type: 'string', pattern: '^[a-z]+$', minLength: 2, maxLength: 8 });
  t.deepEqual(bare('mode'), { type: 'string', enum: ['Fast', 'Slow'], default: 'Slow' });
  t.deepEqual(bare('since'), { allOf: [{ $ref: `#/components/schemas/${metaPrefix}.Time` }] });
  t.deepEqual(bare('limits'), {
    type: 'object',
    additionalProperties: { $ref: '#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity' },
  });
  t.deepEqual(components[`${metaPrefix}.Time`]?.format, 'date-time');
  t.deepEqual(components['io.k8s.apimachinery.pkg.api.resource.Quantity']?.oneOf, [
    { type: 'string' },
    { type: 'number' },
  ]);
  t.deepEqual(components['io.k8s.apimachinery.pkg.util.intstr.IntOrString']?.format, 'int-or-string');
});

test('values that the strategy checks are published, and not checked by the schema', (t) => {
  const kind = defineKind({
    ...{ group: 'example.com', version: 'v1', kind: 'Door' },
    schema: s.message('example.com.v1.Door', 'A door.', {
      spec: optional(
        2,
        s.message('example.com.v1.DoorSpec', '', { state: optional(1, s.string({ values: ['Shut'] }), '') }),
        '',
      ),
    }),
  });
  const published = openApiSchemas([kind])[componentName('example.com.v1.DoorSpec')]?.properties?.['state'];
  t.like(published, { type: 'string', enum: ['Shut'] });
  t.deepEqual(decoderOf(kind.schema)({ spec: { state: 'Ajar' } }).errors, []);
});

test('lists and structs have the OpenAPI extensions of patches and server-side apply', (t) => {
  const ports = property('ports');
  t.is(ports?.['x-kubernetes-patch-strategy'], 'merge');
  t.is(ports?.['x-kubernetes-patch-merge-key'], 'port');
  t.is(ports?.['x-kubernetes-list-type'], 'map');
  t.deepEqual(ports?.['x-kubernetes-list-map-keys'], ['port']);
  t.is(ports?.maxItems, 3);
  t.is(property('tags')?.['x-kubernetes-list-type'], 'set');
  t.is(property('strategy')?.['x-kubernetes-patch-strategy'], 'retainKeys');
});

test('inlined messages are flat', (t) => {
  const probe = components[componentName('com.example.v1.Probe')];
  t.deepEqual(Object.keys(probe?.properties ?? {}), ['command', 'port', 'periodSeconds']);
  t.false(componentName('com.example.v1.Handler') in components);
});

test('bodies that all kinds share are there', (t) => {
  t.deepEqual(components[`${metaPrefix}.Status`]?.['x-kubernetes-group-version-kind'], [
    { group: '', version: 'v1', kind: 'Status' },
  ]);
  t.deepEqual(components[`${metaPrefix}.DeleteOptions`]?.['x-kubernetes-group-version-kind'], [
    { group: 'example.com', version: 'v1', kind: 'DeleteOptions' },
  ]);
  t.is(components[`${metaPrefix}.Patch`]?.type, 'object');
});

test('two messages of one name do not mix', (t) => {
  const inner = (field: string) =>
    s.message('x.y.Spec', '', { [field]: optional(1, s.string(), '') }) as Schema<unknown>;
  const kindOf = (kind: string, field: string) =>
    defineKind({
      group: 'y.x',
      version: 'v1',
      kind,
      schema: s.message(`x.y.${kind}`, '', { spec: optional(2, inner(field), '') }),
    });
  const both = openApiSchemas([kindOf('One', 'a'), kindOf('Two', 'b')]);
  t.deepEqual(['y.x.Spec', 'y.x.Spec_2'].flatMap((name) => Object.keys(both[name]?.properties ?? {})).toSorted(), [
    'a',
    'b',
  ]);
});

test('the JSON Schema of a kind is complete in itself', (t) => {
  const schema = jsonSchemaOf(Widget);
  t.is(schema.title, 'Widget');
  t.deepEqual(Object.keys(schema.properties ?? {}), ['kind', 'apiVersion', 'metadata', 'spec', 'status']);
  const all = references(schema);
  t.true(all.length > 10);
  for (const reference of all) t.true(reference.replace('#/$defs/', '') in (schema.$defs ?? {}), reference);
});

test('recursive kinds have finite documents', (t) => {
  const tree: Schema<unknown> = s.message('x.y.Tree', '', {
    get children() {
      return optional(2, s.list(tree), '');
    },
  });
  const kind = defineKind({
    group: 'y.x',
    version: 'v1',
    kind: 'Tree',
    schema: s.message('x.y.Root', '', { tree: optional(2, tree, '') }),
  });
  t.deepEqual(openApiSchemas([kind])['y.x.Tree']?.properties?.['children']?.items, {
    $ref: '#/components/schemas/y.x.Tree',
  });
  t.true(kind.protobuf);
});
