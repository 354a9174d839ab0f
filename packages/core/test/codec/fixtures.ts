import { objectCodecOf } from '../../src/codec/object-codec.ts';
import { defineKind } from '../../src/kind/define-kind.ts';
import type { KindDefinition } from '../../src/kind/kind-definition.ts';
import { optional, s } from '../../src/kind/schema.ts';
import type { KubeObject } from '../../src/meta/types.ts';
import { FakeClock } from '../../src/runtime/fake-clock.ts';
import { ObjectList } from '../../src/storage/object-list.ts';
import { type ObjectSource, StorageMemory } from '../../src/storage/storage-memory.ts';
import { StoredObject } from '../../src/storage/stored-object.ts';

export interface Widget extends KubeObject {
  spec?: { size?: number; note?: string; old?: string };
  status?: { phase?: string };
}

const schema = s.message('example.Widget', 'A widget.', {
  spec: optional(
    undefined,
    s.message('example.WidgetSpec', '', {
      size: optional(undefined, s.int32(), ''),
      note: optional(undefined, s.string(), ''),
      old: optional(undefined, s.string(), ''),
    }),
    '',
  ),
  status: optional(
    undefined,
    s.message('example.WidgetStatus', '', { phase: optional(undefined, s.string(), '') }),
    '',
  ),
});

/** Without columns, stored as itself. */
export const widgets: KindDefinition<Widget> = defineKind({
  group: 'example.io',
  version: 'v1',
  kind: 'Widget',
  schema,
});

/** Stored as a Widget of v1; only objects with `old` differ in more than the head. */
export const oldWidgets: KindDefinition<Widget> = defineKind({
  group: 'legacy.example.io',
  version: 'v1beta1',
  kind: 'OldWidget',
  schema,
  storage: {
    kind: widgets,
    toStorage: (object) => ({ ...object, kind: 'Widget', apiVersion: 'example.io/v1' }),
    fromStorage: (stored) => {
      const { spec, ...rest } = stored as Widget;
      // Fails for the empty object of a bookmark, as real conversions may.
      if (spec === undefined) throw new TypeError('no spec');
      return {
        spec: { ...spec, note: 'converted' },
        ...rest,
        kind: 'OldWidget',
        apiVersion: 'legacy.example.io/v1beta1',
      };
    },
    isRelabel: (json) => !json.includes('"old":'),
  },
});

/** With columns of its own. */
export const gadgets: KindDefinition<Widget> = defineKind({
  group: '',
  version: 'v1',
  kind: 'Gadget',
  schema,
  columns: [
    {
      name: 'Name',
      type: 'string',
      format: 'name',
      description: 'The name.',
      priority: 0,
      value: (o) => o.metadata?.name ?? '',
    },
    {
      name: 'Size',
      type: 'integer',
      description: 'The size.',
      priority: 0,
      value: (o) => (o.spec as { size: number }).size,
    },
    {
      name: 'Age',
      type: 'string',
      description: 'The age.',
      priority: 1,
      value: (o, { now }) => `${(now.getTime() - Date.parse(o.metadata?.creationTimestamp ?? '')) / 1000}s`,
    },
  ],
  rowConditions: (o) => (o.status?.phase === 'Done' ? [{ type: 'Completed', status: 'True', reason: 'Done' }] : []),
});

let revision = 100;

/** Forms of objects are kept as in a plane. */
export const source: ObjectSource = { sharedValues: false, memory: new StorageMemory(new FakeClock()) };

/** A stored object of the kind (or of the kind it is stored as). */
export function stored(kind: KindDefinition, name: string, fields: Omit<Widget, 'metadata'> = {}): StoredObject {
  const storedKind = kind.storage?.kind ?? kind;
  const json = objectCodecOf(storedKind).encode({
    ...fields,
    metadata: {
      name,
      namespace: 'ns',
      uid: `uid-${name}`,
      creationTimestamp: '2024-01-02T03:04:05Z',
      labels: { 'a"}b{': '\\"{}' },
    },
  });
  revision += 1;
  return StoredObject.fromValue(`/x/ns/${name}`, revision, revision, json, source);
}

/** A list of one page. */
export function page(objects: readonly StoredObject[], token = '', remaining?: number) {
  const next = token === '' ? undefined : { revision: 500, after: 'x' };
  return { list: new ObjectList(objects, 500, next, remaining), continue: token };
}
