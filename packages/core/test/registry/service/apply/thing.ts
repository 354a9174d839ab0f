import { createInProcessClient } from '@keelson/client';
import { defineKind, type KubeObject, optional, required, type Stored, s } from '@keelson/core';
import { createContinueTokens, createDirectStorages, createResourceRegistry } from '@keelson/core/internal';
import { FakeClock, silentLogger } from '@keelson/core/runtime';
import { MemoryStore } from '@keelson/storage-memory';

const struct = s.object({ x: optional(s.string()), y: optional(s.string()) });

const element = s.object({
  name: required(s.string()),
  v: optional(s.string()),
  w: optional(s.string()),
  m: optional(s.map(s.string())),
  set: optional(s.set(s.string())),
});

const port = s.object({
  port: required(s.int32()),
  protocol: optional(s.string(), '', { default: 'TCP' }),
  v: optional(s.string()),
});

/** A kind with fields of every type that an apply treats in a way of its own. */
export const Thing = defineKind({
  group: 'apply.example.com',
  version: 'v1',
  kind: 'Thing',
  schema: s.object({
    spec: optional(
      s.object({
        n: optional(s.int32()),
        b: optional(s.bool()),
        s: optional(s.string()),
        q: optional(s.quantity()),
        ios: optional(s.intOrString()),
        t: optional(s.time()),
        m: optional(s.map(s.string())),
        mm: optional(s.map(s.map(s.string()))),
        am: optional(s.map(s.string(), { mapType: 'atomic' })),
        st: optional(struct),
        as: optional({ node: { ...struct.node, mapType: 'atomic' } } as typeof struct),
        set: optional(s.set(s.string())),
        nset: optional(s.set(s.int32())),
        al: optional(s.list(s.string())),
        als: optional(s.list(struct)),
        lm: optional(s.listByKey(element, 'name')),
        lm2: optional(s.list(port, { listType: 'map', listMapKeys: ['port', 'protocol'] })),
        any: optional(s.any()),
        raw: optional(s.raw()),
      }),
    ),
    status: optional(s.object({ phase: optional(s.string()), n: optional(s.int32()) })),
  }),
  subresources: [{ type: 'status', name: 'status' }],
});

export type Spec = Record<string, unknown>;

/** A registry with Things, and the writes of several managers. */
export async function createThings() {
  const clock = new FakeClock(Date.UTC(2026, 0, 2, 3, 4, 5));
  const store = new MemoryStore({ clock });
  await store.ready();
  const storages = createDirectStorages({ store, clock });
  await storages.start();
  const registry = createResourceRegistry({
    storages,
    tokens: createContinueTokens({ secret: Buffer.alloc(32), fingerprint: 'test', clock }),
    clock,
    logger: silentLogger,
    admission: [],
    kinds: [Thing],
  });
  const things = createInProcessClient(registry, { clock }).dynamic({
    group: Thing.group,
    version: Thing.version,
    resource: 'things',
  });
  let next = 0;
  return {
    clock,
    /** An object that does not exist yet. */
    thing() {
      const name = `t${next++}`;
      const configuration = (spec: Spec) => ({ metadata: { name }, spec });
      const client = things.namespace('n');
      return {
        name,
        client,
        create: (spec: Spec) => client.create({ metadata: { name }, spec } as KubeObject),
        get: () => client.get(name),
        apply: (manager: string, spec: Spec, options: { force?: boolean } = {}) =>
          client.apply(configuration(spec) as never, { fieldManager: manager, ...options }),
        async update(manager: string, spec: Spec) {
          const current = await client.get(name);
          return client.update({ ...current, spec } as KubeObject, { fieldManager: manager });
        },
      };
    },
    stop: () => storages.stop(),
  };
}

/** The paths in FieldsV1, as messages show them; below `spec`, whose name is left out. */
function pathsOf(fields: Record<string, unknown>, prefix = ''): string[] {
  const names = Object.keys(fields);
  if (names.length === 0) return [prefix];
  return names.flatMap((name) => {
    if (name === '.') return [prefix];
    const rest = name.slice(2);
    const text =
      name[0] === 'f'
        ? `.${rest}`
        : name[0] === 'v'
          ? `[=${rest}]`
          : `[${Object.entries(JSON.parse(rest))
              .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
              .join(',')}]`;
    return pathsOf(fields[name] as Record<string, unknown>, `${prefix}${text}`);
  });
}

/** Owners of an object: managers, with `~` for updates, and the sorted paths that they own. */
export function ownersOf(object: KubeObject | Stored<KubeObject>): Record<string, string[]> {
  const owners: Record<string, string[]> = {};
  for (const { manager, operation, fieldsV1 = {} } of object.metadata?.managedFields ?? []) {
    const paths = pathsOf(fieldsV1).map((path) => (path.startsWith('.spec') ? path.slice('.spec'.length) : path));
    owners[`${manager}${operation === 'Update' ? '~' : ''}`] = paths.sort();
  }
  return owners;
}
