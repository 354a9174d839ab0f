import { UsageError } from '@keelson/core/internal';
import { builtinKinds } from '@keelson/kinds';
import { MemoryStore } from '@keelson/storage-memory';
import test from 'ava';
import { parseHistory, type StorageChoice } from '../../src/config/storage-choice.ts';
import { routeKinds } from '../../src/storage/plane-stores.ts';
import { planStorage } from '../../src/storage/storage-plan.ts';

const defaults = { reads: 'consistent' } as const;
const plan = (choice: unknown) => planStorage(choice as StorageChoice, defaults, '--storage');
const storesOf = (choice: unknown) => {
  const storeOf = routeKinds(plan(choice), builtinKinds);
  return (group: string, resource: string) => {
    const kind = builtinKinds.find((known) => known.group === group && known.names.plural === resource);
    if (kind === undefined) throw new Error(`no ${resource}`);
    return storeOf(kind);
  };
};
const messageOf = (t: import('ava').ExecutionContext, run: () => unknown) =>
  t.throws(run, { instanceOf: UsageError })?.message ?? '';

test('a single store holds every kind', (t) => {
  t.deepEqual(
    plan('memory:').stores.map(({ name }) => name),
    ['default'],
  );
  t.is(storesOf('memory:')('', 'pods'), 'default');
});

test('a route applies to its resources and not to the rest of the group', (t) => {
  const store = storesOf({ default: 'lmdb:x', routes: [{ group: '', resources: ['events'], storage: 'memory:' }] });
  t.is(store('', 'events'), 'events');
  t.is(store('', 'pods'), 'default');
});

test('a route for resources beats one for their whole group, in any order', (t) => {
  const whole = { group: 'apps', storage: 'memory:', name: 'all' };
  const one = { group: 'apps', resources: ['deployments'], storage: 'memory:', name: 'one' };
  for (const routes of [
    [whole, one],
    [one, whole],
  ]) {
    const store = storesOf({ default: 'lmdb:x', routes });
    t.is(store('apps', 'deployments'), 'one');
    t.is(store('apps', 'daemonsets'), 'all');
  }
});

test('kinds with the same stored objects are in one store, whichever of them a route names', (t) => {
  for (const group of ['apps', 'extensions']) {
    const store = storesOf({ default: 'lmdb:x', routes: [{ group, resources: ['deployments'], storage: 'memory:' }] });
    t.is(store('apps', 'deployments'), store('extensions', 'deployments'));
    t.not(store('apps', 'deployments'), 'default');
  }
});

test('routes to the same place share a store, routes with names of their own do not', (t) => {
  const shared = plan({
    default: 'lmdb:x',
    routes: [
      { group: '', resources: ['events'], storage: 'memory:' },
      { group: 'apps', storage: 'memory:' },
      { group: 'extensions', storage: 'lmdb:x' },
    ],
  });
  t.deepEqual(
    shared.routes.map(({ store }) => store),
    ['events', 'events', 'default'],
  );
  const apart = plan({ default: 'memory:', routes: [{ name: 'apart', group: 'apps', storage: 'memory:' }] });
  t.deepEqual(
    apart.stores.map(({ name }) => name),
    ['default', 'apart'],
  );
  const store = new MemoryStore();
  t.is(plan({ default: store, routes: [{ group: 'apps', storage: store }] }).stores.length, 1);
  t.is(plan({ default: store, routes: [{ group: 'apps', storage: new MemoryStore() }] }).stores.length, 2);
});

test('settings of a store win over those of all stores', (t) => {
  const { stores } = planStorage(
    {
      default: { url: 'memory:', reads: 'any', history: { minAge: '10m' } },
      routes: [{ group: 'apps', storage: { adapter: 'lmdb', path: 'x' } }],
    },
    { reads: 'consistent', history: { minChanges: 5 } },
    '--storage',
  );
  t.deepEqual(
    stores.map(({ reads, history, historyRequired }) => ({ reads, history, historyRequired })),
    [
      { reads: 'any', history: { minAgeMs: 600_000 }, historyRequired: true },
      { reads: 'consistent', history: { minChanges: 5 }, historyRequired: false },
    ],
  );
});

test('the age of a history window is a duration or milliseconds', (t) => {
  t.deepEqual(parseHistory({ minChanges: 7, minAge: '1h30m' }, 'history'), { minChanges: 7, minAgeMs: 5_400_000 });
  t.deepEqual(parseHistory({ minAgeMs: 50 }, 'history'), { minAgeMs: 50 });
  for (const [raw, message] of [
    [{ minAge: '5 minutes' }, /history\.minAge must be a duration such as 10s or 1h30m/],
    [{ minAge: '-5m' }, /history\.minAge must not be negative/],
    [{ minAge: 5 }, /history\.minAge must be a duration such as 10s, not 5/],
    [{ minAge: '5m', minAgeMs: 1 }, /contains both minAge and minAgeMs/],
    [{ minChange: 1 }, /history has no key minChange; did you mean minChanges\?/],
    [{ minChanges: 1.5 }, /history\.minChanges must be a whole number/],
    ['5m', /history must be an object/],
  ] as const) {
    t.regex(
      messageOf(t, () => parseHistory(raw, 'history')),
      message,
    );
  }
});

const route = (fields: object) => ({ default: 'lmdb:x', routes: [{ group: 'apps', storage: 'memory:', ...fields }] });
const refused: readonly (readonly [title: string, choice: unknown, message: RegExp])[] = [
  [
    'a group that is not served',
    route({ group: 'aps' }),
    /--storage\.routes\[0\]: no kind of the group aps is served; did you mean apps\?/,
  ],
  [
    'a resource that the group does not have',
    route({ resources: ['deployment'] }),
    /routes\[0\]: the group apps has no resource deployment; did you mean deployments\?/,
  ],
  ['a short name', route({ resources: ['deploy'] }), /has no resource deploy; did you mean deployments\?/],
  [
    'a kind that is not stored',
    route({ group: 'authorization.k8s.io', resources: ['subjectaccessreviews'] }),
    /subjectaccessreviews\.authorization\.k8s\.io is not stored anywhere/,
  ],
  [
    'a resource twice in one route',
    route({ resources: ['deployments', 'deployments'] }),
    /routes\[0\]: deployments\.apps is routed twice/,
  ],
  [
    'a group twice',
    {
      default: 'lmdb:x',
      routes: [
        { group: 'apps', storage: 'memory:' },
        { group: 'apps', storage: 'lmdb:y' },
      ],
    },
    /routes\[1\]: the group apps is routed twice/,
  ],
  [
    'two views of the same objects to different stores',
    {
      default: 'lmdb:x',
      routes: [
        { group: 'apps', resources: ['deployments'], storage: 'memory:' },
        { group: 'extensions', resources: ['deployments'], storage: 'lmdb:y' },
      ],
    },
    /routes\[1\]: deployments\.extensions are the same objects as deployments\.apps, which --storage\.routes\[0\] sends to another store/,
  ],
  ['routes without a default', { routes: [] }, /--storage has routes but no default/],
  ['an unknown key', { default: 'memory:', router: [] }, /--storage has no key router; did you mean routes\?/],
  [
    'an unknown key of a route',
    route({ resource: ['x'] }),
    /routes\[0\] has no key resource; did you mean resources\?/,
  ],
  [
    'no group',
    { default: 'memory:', routes: [{ storage: 'memory:' }] },
    /routes\[0\]\.group must be the name of an API group/,
  ],
  [
    'no storage',
    { default: 'memory:', routes: [{ group: 'apps' }] },
    /routes\[0\]\.storage must be a non-empty string/,
  ],
  ['an empty list of resources', route({ resources: [] }), /routes\[0\]\.resources must be a list of plural names/],
  ['a name that cannot be a label', route({ name: 'My Store' }), /routes\[0\]\.name must consist of at most 63/],
  ['a name that is taken', route({ name: 'default' }), /routes\[0\]: there is another store with the name default/],
  ['an object that names no store', {}, /--storage as an object must contain "url", or "adapter"/],
  [
    'an unknown way to read',
    { url: 'memory:', reads: 'quorum' },
    /--storage\.reads: unsupported value "quorum"; use one of consistent, any/,
  ],
];

for (const [title, choice, message] of refused) {
  test(`refused: ${title}`, (t) => {
    t.regex(
      messageOf(t, () => storesOf(choice)),
      message,
    );
  });
}
