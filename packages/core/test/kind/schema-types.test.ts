import test from 'ava';
import type { ResourceClient } from '../../src/client/resource-client.ts';
import type { ObjectOf } from '../../src/kind/define-kind.ts';
import { objectMetaSchema } from '../../src/kind/object-meta-schema.ts';
import {
  always,
  embedded,
  filled,
  type Infer,
  inline,
  optional,
  required,
  type Schema,
  s,
} from '../../src/kind/schema.ts';
import { messageNode } from '../../src/kind/schema-walk.ts';
import type { ObjectMeta } from '../../src/meta/types.ts';
import { Widget, type widgetSchema } from './sample-kinds.ts';

// The checks of this file are made by the compiler: a line marked as an error that compiles is an error itself.

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type Flat<T> = { [K in keyof T]: T[K] };
function holds<T extends true>(): T | undefined {
  return undefined;
}

const sample = s.message('x.Sample', '', {
  must: required(1, s.string(), ''),
  zero: always(2, s.list(s.int32()), ''),
  may: optional(3, s.enum('A', 'B'), ''),
  part: embedded(4, s.message('x.Part', '', { deep: optional(1, s.bool(), '') }), ''),
  seen: filled(5, s.map(s.quantity()), ''),
  either: inline(
    6,
    s.message('x.Either', '', { port: optional(1, s.intOrString(), ''), host: required(2, s.string(), '') }),
  ),
  rest: optional(7, s.raw(), ''),
});
type Sample = Infer<typeof sample>;

test('fields are required or optional as they are declared', (t) => {
  holds<Equal<Sample['must'], string>>();
  holds<Equal<Sample['zero'], number[]>>();
  holds<Equal<Sample['may'], 'A' | 'B' | undefined>>();
  holds<Equal<Flat<Sample['part']>, { deep?: boolean }>>();
  holds<Equal<Sample['seen'], Record<string, string> | undefined>>();
  holds<Equal<Sample['rest'], Record<string, unknown> | undefined>>();

  const whole: Sample = { must: 'a', zero: [], part: {}, host: 'h' };
  // @ts-expect-error a required field is missing
  const withoutMust: Sample = { zero: [], part: {}, host: 'h' };
  // @ts-expect-error a field that is always there is missing
  const withoutZero: Sample = { must: 'a', part: {}, host: 'h' };
  // @ts-expect-error optional does not mean undefined
  const explicitUndefined: Sample = { ...whole, may: undefined };
  t.truthy([whole, withoutMust, withoutZero, explicitUndefined]);
});

test('inlined messages lie flat in their parent', (t) => {
  holds<Equal<Sample['host'], string>>();
  holds<Equal<Sample['port'], number | string | undefined>>();
  // @ts-expect-error the inlined message has no key of its own
  type Nested = Sample['either'];
  // @ts-expect-error a required field of an inlined message is missing
  const withoutHost: Sample = { must: 'a', zero: [], part: {} };
  t.truthy(withoutHost as Nested | Sample);
});

test('closed sets are unions', (t) => {
  const good: Sample['may'] = 'B';
  // @ts-expect-error not a member of the set
  const bad: Sample['may'] = 'C';
  t.truthy([good, bad]);
});

test('a field that is not declared breaks every use', (t) => {
  type W = ObjectOf<typeof widgetSchema>;
  const widget: W = { metadata: { name: 'a' }, spec: { size: 1 } };
  t.is(widget.spec.size, 1);
  // @ts-expect-error the field is called color
  t.is(widget.spec.colour, undefined);
  // @ts-expect-error metadata has no such field
  t.is(widget.metadata?.nmae, undefined);
  // @ts-expect-error numbers are not texts
  const wrong: W = { spec: { size: '1' } };
  t.truthy(wrong);
  const read = Widget.selectableFields.get('spec.color');
  t.is(read?.({ spec: { size: 1, color: 'red' } }), 'red');
});

test('the type of a kind follows from its declaration; objects of a server have metadata', (t) => {
  holds<Equal<ObjectOf<typeof Widget>, ObjectOf<typeof widgetSchema>>>();
  const read = async (client: ResourceClient<ObjectOf<typeof Widget>>) => {
    const { metadata, spec } = await client.get('a');
    const text: string = metadata.name + metadata.uid + metadata.resourceVersion + metadata.creationTimestamp;
    for (const { metadata: each } of (await client.list()).items) t.truthy(each.name + spec.size + text);
    for await (const event of client.watch()) if (event.type === 'ADDED') t.truthy(event.object.metadata.uid);
    return client.create({ metadata: { name: 'b' }, spec: { size: 1 } });
  };
  t.is(typeof read, 'function');
});

test('the schema of ObjectMeta has the fields of the hand-written interface, all of them', (t) => {
  // The declaration of objectMetaSchema checks the types of its fields; the keys are checked here.
  const keys: Readonly<Record<keyof ObjectMeta, true>> = {
    name: true,
    generateName: true,
    namespace: true,
    selfLink: true,
    uid: true,
    resourceVersion: true,
    generation: true,
    creationTimestamp: true,
    deletionTimestamp: true,
    deletionGracePeriodSeconds: true,
    labels: true,
    annotations: true,
    ownerReferences: true,
    finalizers: true,
    managedFields: true,
  };
  const node = messageNode(objectMetaSchema);
  t.deepEqual(Object.keys(node?.fields ?? {}), Object.keys(keys));
  // @ts-expect-error a schema whose name is a number is no schema of metadata
  const wrong: Schema<ObjectMeta> = s.message('x.Meta', '', { name: optional(1, s.int32(), '') });
  t.truthy(wrong);
});

test('values of one schema do not pass for another', (t) => {
  // @ts-expect-error a schema of texts is no schema of numbers
  const numbers: Schema<number> = s.string();
  t.truthy(numbers);
});
