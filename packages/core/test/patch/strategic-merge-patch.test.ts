import test from 'ava';
import fc from 'fast-check';
import { inline, optional, type Schema, s } from '../../src/kind/schema.ts';
import { PatchError } from '../../src/patch/patch-budget.ts';
import { applyStrategicMergePatch } from '../../src/patch/strategic-merge-patch.ts';

const message = (fields: Record<string, Schema<unknown>>) =>
  s.message(
    'test',
    '',
    Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, optional(undefined, schema, '')])),
  );

const env = message({
  name: s.string(),
  value: s.string(),
  valueFrom: message({ fieldRef: s.any(), secretKeyRef: s.any() }),
});
const port = message({ name: s.string(), containerPort: s.int32(), protocol: s.string() });
const container = message({
  name: s.string(),
  image: s.string(),
  command: s.list(s.string()),
  env: s.listByKey(env, 'name'),
  ports: s.listByKey(port, 'containerPort'),
  resources: message({ limits: s.map(s.quantity()) }),
});
const source = message({ configMap: s.any(), secret: s.any(), emptyDir: s.any() });
const volume = s.message('volume', '', {
  name: optional(undefined, s.string(), ''),
  source: inline(undefined, source),
});
const schema = message({
  metadata: message({
    labels: s.map(s.string()),
    finalizers: s.set(s.string()),
    ownerReferences: s.listByKey(message({ uid: s.string(), name: s.string() }), 'uid'),
  }),
  spec: message({
    replicas: s.int32(),
    strategy: message({ type: s.string(), rollingUpdate: message({ maxSurge: s.intOrString() }) }),
    containers: s.listByKey(container, 'name'),
    volumes: s.listByKey(volume, 'name', { patchStrategy: 'merge,retainKeys' }),
    tolerations: s.list(message({ key: s.string() })),
    unkeyed: s.list(message({ a: s.string() }), { patchStrategy: 'merge' }),
  }),
});

type Json = Record<string, unknown>;

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null)
    for (const item of Object.values(Object.freeze(value))) deepFreeze(item);
  return value;
}

const apply = (document: unknown, patch: unknown) =>
  applyStrategicMergePatch(deepFreeze(document), deepFreeze(patch), schema);
const spec = (fields: Json) => ({ spec: fields });
const names = (list: unknown) => (list as { name: string }[]).map((item) => item.name).join();
const container3 = () => spec({ containers: ['a', 'b', 'c'].map((name) => ({ name, image: `${name}:1` })) });

const gives = test.macro((t, document: unknown, patch: unknown, expected: unknown) => {
  const once = apply(document, patch);
  t.deepEqual(once, expected);
  t.deepEqual(apply(once, patch), expected, 'a second time changes nothing');
});

test(
  'objects merge and null deletes',
  gives,
  spec({ replicas: 1, strategy: { type: 'R' } }),
  spec({ replicas: null, strategy: { rollingUpdate: { maxSurge: 1 } } }),
  spec({ strategy: { type: 'R', rollingUpdate: { maxSurge: 1 } } }),
);
test(
  'nulls in a new subtree are dropped',
  gives,
  {},
  { metadata: { labels: { a: null, b: '1' } } },
  { metadata: { labels: { b: '1' } } },
);
test(
  'deleting what is not there changes nothing',
  gives,
  { spec: {} },
  { spec: { replicas: null }, x: null },
  { spec: {} },
);
test(
  'a value of another type is replaced',
  gives,
  spec({ strategy: 'text' }),
  spec({ strategy: { type: 'R' } }),
  spec({ strategy: { type: 'R' } }),
);
test(
  'a list without strategy is replaced',
  gives,
  spec({ tolerations: [{ key: 'a' }, { key: 'b' }] }),
  spec({ tolerations: [{ key: 'c' }] }),
  spec({ tolerations: [{ key: 'c' }] }),
);
test(
  'a list of scalars without strategy is replaced inside a merged element',
  gives,
  spec({ containers: [{ name: 'a', command: ['x', 'y'] }] }),
  spec({ containers: [{ name: 'a', command: ['z'] }] }),
  spec({ containers: [{ name: 'a', command: ['z'] }] }),
);
test(
  'kubectl set image: the matched container changes, the others stay in place',
  gives,
  container3(),
  spec({ containers: [{ name: 'b', image: 'b:2' }] }),
  spec({
    containers: [
      { name: 'a', image: 'a:1' },
      { name: 'b', image: 'b:2' },
      { name: 'c', image: 'c:1' },
    ],
  }),
);
test(
  'an element without match precedes those that only the document has',
  gives,
  container3(),
  spec({ containers: [{ name: 'd', image: null, command: ['x'] }] }),
  spec({ containers: [{ name: 'd', command: ['x'] }, ...(container3().spec['containers'] as Json[])] }),
);
test(
  'nested keyed lists: env and ports of one container',
  gives,
  spec({ containers: [{ name: 'a', env: [{ name: 'X', value: '1' }], ports: [{ containerPort: 80, name: 'web' }] }] }),
  spec({
    containers: [
      {
        name: 'a',
        env: [
          { name: 'Y', value: '2' },
          { name: 'X', value: null, valueFrom: { fieldRef: {} } },
        ],
        ports: [{ containerPort: 80, protocol: 'UDP' }],
      },
    ],
  }),
  spec({
    containers: [
      {
        name: 'a',
        env: [
          { name: 'Y', value: '2' },
          { name: 'X', valueFrom: { fieldRef: {} } },
        ],
        ports: [{ containerPort: 80, name: 'web', protocol: 'UDP' }],
      },
    ],
  }),
);
test(
  'an absent list is set to the patch list without its directives',
  gives,
  {},
  spec({
    containers: [
      { name: 'a', $patch: 'delete' },
      { name: 'b', env: [{ $patch: 'replace' }, { name: 'X' }] },
    ],
    '$setElementOrder/containers': [{ name: 'b' }],
  }),
  spec({ containers: [{ name: 'b', env: [{ name: 'X' }] }] }),
);
test(
  'fields of inlined messages are merged',
  gives,
  spec({ volumes: [{ name: 'v', configMap: { name: 'a' } }] }),
  spec({ volumes: [{ name: 'v', configMap: { items: [] } }] }),
  spec({ volumes: [{ name: 'v', configMap: { name: 'a', items: [] } }] }),
);

test(
  '$patch: replace makes a map exactly the patch',
  gives,
  spec({ strategy: { type: 'R', rollingUpdate: { maxSurge: 1 } } }),
  spec({ strategy: { $patch: 'replace', type: 'Recreate' } }),
  spec({ strategy: { type: 'Recreate' } }),
);
test(
  '$patch: delete empties a map',
  gives,
  spec({ strategy: { type: 'R' } }),
  spec({ strategy: { $patch: 'delete' } }),
  spec({ strategy: {} }),
);
test('$patch: delete does not create a map', gives, spec({}), spec({ strategy: { $patch: 'delete' } }), spec({}));
test(
  '$patch: delete removes an element',
  gives,
  container3(),
  spec({
    containers: [
      { name: 'b', $patch: 'delete' },
      { name: 'c', image: 'c:2' },
    ],
  }),
  spec({
    containers: [
      { name: 'a', image: 'a:1' },
      { name: 'c', image: 'c:2' },
    ],
  }),
);
test(
  '$patch: replace among elements replaces the list',
  gives,
  container3(),
  spec({ containers: [{ name: 'd' }, { $patch: 'replace' }] }),
  spec({ containers: [{ name: 'd' }] }),
);
test(
  'a list patch with only $patch: replace empties the list',
  gives,
  container3(),
  spec({ containers: [{ $patch: 'replace' }] }),
  spec({ containers: [] }),
);
test(
  '$patch: replace on the whole document',
  gives,
  container3(),
  { $patch: 'replace', spec: { replicas: 1 } },
  spec({ replicas: 1 }),
);

test(
  'finalizers are a set, new ones first',
  gives,
  { metadata: { finalizers: ['a', 'b'] } },
  { metadata: { finalizers: ['c', 'a', 'c'] } },
  { metadata: { finalizers: ['c', 'a', 'b'] } },
);
test(
  '$deleteFromPrimitiveList removes values',
  gives,
  { metadata: { finalizers: ['a', 'b', 'c'] } },
  {
    metadata: {
      '$deleteFromPrimitiveList/finalizers': ['a', 'x'],
      finalizers: ['d'],
      '$setElementOrder/finalizers': ['d', 'b'],
    },
  },
  { metadata: { finalizers: ['d', 'b', 'c'] } },
);
test(
  '$deleteFromPrimitiveList of an absent list changes nothing',
  gives,
  { metadata: {} },
  { metadata: { '$deleteFromPrimitiveList/finalizers': ['a'] } },
  { metadata: {} },
);

test('kubectl apply of a new container: order of the manifest, sidecars of the server keep their place', (t) => {
  const live = spec({ containers: ['proxy', 'a', 'b', 'log'].map((name) => ({ name })) });
  const patch = spec({
    '$setElementOrder/containers': [{ name: 'b' }, { name: 'new' }, { name: 'a' }],
    containers: [{ name: 'new', image: 'n' }],
  });
  const once = apply(live, patch) as typeof live;
  t.is(names(once.spec['containers']), 'proxy,b,new,a,log');
  t.deepEqual(apply(once, patch), once);
});
test(
  '$setElementOrder without other changes reorders a list',
  gives,
  container3(),
  spec({ '$setElementOrder/containers': [{ name: 'c' }, { name: 'a' }, { name: 'b' }] }),
  spec({
    containers: [
      { name: 'c', image: 'c:1' },
      { name: 'a', image: 'a:1' },
      { name: 'b', image: 'b:1' },
    ],
  }),
);
test(
  '$setElementOrder with a deletion, as kubectl apply sends it',
  gives,
  container3(),
  spec({
    '$setElementOrder/containers': [{ name: 'a' }, { name: 'c' }],
    containers: [{ $patch: 'delete', name: 'b' }],
  }),
  spec({
    containers: [
      { name: 'a', image: 'a:1' },
      { name: 'c', image: 'c:1' },
    ],
  }),
);
test(
  '$setElementOrder may name what does not exist',
  gives,
  spec({ containers: [{ name: 'a' }] }),
  spec({ '$setElementOrder/containers': [{ name: 'x' }, { name: 'a' }] }),
  spec({ containers: [{ name: 'a' }] }),
);
test(
  '$setElementOrder of a list that is replaced or absent is without effect',
  gives,
  spec({}),
  spec({
    '$setElementOrder/containers': [{ name: 'x' }],
    '$setElementOrder/tolerations': [{ key: 'b' }],
    tolerations: [{ key: 'a' }],
  }),
  spec({ tolerations: [{ key: 'a' }] }),
);
test('a new item is inserted before a server item that followed its predecessor', (t) => {
  const once = apply(
    spec({ containers: [{ name: 'a' }, { name: 'b' }] }),
    spec({ '$setElementOrder/containers': [{ name: 'a' }, { name: 'c' }], containers: [{ name: 'c' }] }),
  );
  t.is(names((once as { spec: Json }).spec['containers']), 'a,c,b');
});

test('a message with the strategy replace is replaced whole', (t) => {
  const selector = optional(undefined, message({ matchLabels: s.map(s.string()) }), '', { patchStrategy: 'replace' });
  const budget = s.message('budget', '', { selector });
  const before = deepFreeze({ selector: { matchLabels: { app: 'web', tier: 'front' } } });
  const patch = deepFreeze({ selector: { matchLabels: { app: 'db' } } });
  t.deepEqual(applyStrategicMergePatch(before, patch, budget), patch);
});

test(
  '$retainKeys drops the other keys: change of strategy',
  gives,
  spec({ strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } }),
  spec({ strategy: { $retainKeys: ['type'], rollingUpdate: null, type: 'Recreate' } }),
  spec({ strategy: { type: 'Recreate' } }),
);
test(
  '$retainKeys in a list element: a volume changes its source',
  gives,
  spec({ volumes: [{ name: 'v', emptyDir: {} }] }),
  spec({
    volumes: [{ $retainKeys: ['name', 'secret'], name: 'v', secret: { secretName: 's' } }],
    '$setElementOrder/volumes': [{ name: 'v' }],
  }),
  spec({ volumes: [{ name: 'v', secret: { secretName: 's' } }] }),
);

const refuses = test.macro({
  title: (_, name: string) => `refuses: ${name}`,
  exec(t, _name: string, kind: PatchError['kind'], patch: unknown, document: unknown = container3(), text?: string) {
    const error = t.throws(() => apply(document, patch), { instanceOf: PatchError });
    t.is(error?.kind, kind, error?.message);
    if (text) t.true(error?.message.includes(text), error?.message);
  },
});
test(refuses, 'a list as patch', 'malformed', []);
test(
  refuses,
  'element without merge key',
  'unprocessable',
  spec({ containers: [{ image: 'x' }] }),
  undefined,
  'does not contain declared merge key: name',
);
test(
  refuses,
  'unknown $patch',
  'unprocessable',
  spec({ strategy: { $patch: 'merge' } }),
  spec({ strategy: {} }),
  'unknown patch type: merge in map: spec.strategy',
);
test(refuses, 'unknown $patch in an element', 'unprocessable', spec({ containers: [{ name: 'a', $patch: 'rename' }] }));
test(refuses, 'unknown $patch in a new subtree', 'unprocessable', spec({ strategy: { rollingUpdate: { $patch: 1 } } }));
test(refuses, '$patch: delete without merge key', 'unprocessable', spec({ containers: [{ $patch: 'delete' }] }));
test(refuses, 'list of lists', 'unprocessable', spec({ containers: [[{ name: 'a' }]] }));
test(refuses, 'scalars among objects', 'unprocessable', spec({ containers: ['a'] }));
test(
  refuses,
  'merge of objects without key',
  'unprocessable',
  spec({ unkeyed: [{ a: '1' }] }),
  spec({ unkeyed: [{ a: '0' }] }),
);
test(
  refuses,
  'set key missing in $retainKeys',
  'unprocessable',
  spec({ strategy: { $retainKeys: ['rollingUpdate'], type: 'x' } }),
);
test(refuses, '$retainKeys that is no list', 'malformed', spec({ strategy: { $retainKeys: 'type' } }));
test(refuses, '$retainKeys of other things', 'malformed', spec({ strategy: { $retainKeys: [1] } }));
test(refuses, '$deleteFromPrimitiveList that is no list', 'malformed', {
  metadata: { '$deleteFromPrimitiveList/finalizers': 'a' },
});
test(refuses, '$setElementOrder that is no list', 'malformed', spec({ '$setElementOrder/containers': { name: 'a' } }));
test(
  refuses,
  '$setElementOrder of values for a keyed list',
  'malformed',
  spec({ '$setElementOrder/containers': ['a'] }),
);
test(
  refuses,
  '$setElementOrder of objects for a set',
  'malformed',
  { metadata: { '$setElementOrder/finalizers': [{ name: 'a' }] } },
  { metadata: { finalizers: ['a'] } },
);
test(
  refuses,
  'item that the order does not name',
  'unprocessable',
  spec({ '$setElementOrder/containers': [{ name: 'a' }], containers: [{ name: 'b' }] }),
  undefined,
  "doesn't match",
);
test(
  refuses,
  'items in another sequence than the order',
  'unprocessable',
  spec({ '$setElementOrder/containers': [{ name: 'a' }, { name: 'b' }], containers: [{ name: 'b' }, { name: 'a' }] }),
);

test('hostile names are data and touch no prototype', (t) => {
  const patch = JSON.parse('{"metadata":{"labels":{"__proto__":"x","constructor":"y"}},"__proto__":{"polluted":1}}');
  const result = apply({ metadata: { labels: { a: '1' } } }, patch);
  t.is(
    JSON.stringify(result),
    '{"metadata":{"labels":{"a":"1","__proto__":"x","constructor":"y"}},"__proto__":{"polluted":1}}',
  );
  t.is(({} as Json)['polluted'], undefined);
  const replaced = apply(result, JSON.parse('{"metadata":{"$patch":"replace","__proto__":{"a":null,"b":1}}}'));
  t.is(JSON.stringify((replaced as Json)['metadata']), '{"__proto__":{"b":1}}');
});

test('ten thousand elements merge in linear time', (t) => {
  const list = (image: string) => Array.from({ length: 10_000 }, (_, i) => ({ name: `c${i}`, image }));
  const order = list('')
    .map(({ name }) => ({ name }))
    .reverse();
  const started = performance.now();
  const result = apply(
    spec({ containers: list('1') }),
    spec({ containers: list('2').reverse(), '$setElementOrder/containers': order }),
  );
  t.true(performance.now() - started < 20_000);
  t.is(((result as { spec: Json }).spec['containers'] as Json[])[0]?.['name'], 'c9999');
});

const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const containers = fc.uniqueArray(
  fc.record(
    {
      name,
      image: fc.constantFrom('1', '2'),
      env: fc.uniqueArray(fc.record({ name }), { selector: (e) => e.name, maxLength: 3 }),
    },
    { requiredKeys: ['name'] },
  ),
  { selector: (c) => c.name },
);
const finalizers = fc.uniqueArray(name);
const document = fc.record({
  metadata: fc.record({ finalizers, labels: fc.dictionary(name, name) }, { requiredKeys: [] }),
  spec: fc.record({ containers, replicas: fc.nat(3) }, { requiredKeys: [] }),
});
const patches = fc
  .record({
    metadata: fc.record(
      { finalizers, '$deleteFromPrimitiveList/finalizers': finalizers, labels: fc.dictionary(name, fc.option(name)) },
      { requiredKeys: [] },
    ),
    spec: fc.record(
      {
        containers,
        replicas: fc.option(fc.nat(3)),
        delete: fc.uniqueArray(name),
        extra: fc.uniqueArray(name),
        ordered: fc.boolean(),
      },
      { requiredKeys: ['delete', 'extra', 'ordered'] },
    ),
  })
  .map(({ metadata, spec: { containers: raw, delete: gone, extra, ordered, ...rest } }) => {
    const list = (raw ?? []).filter((c) => !gone.includes(c.name));
    const order = [
      ...list.map((c) => c.name),
      ...extra.filter((n) => !gone.includes(n) && !list.some((c) => c.name === n)),
    ];
    return {
      metadata,
      spec: {
        ...rest,
        ...(raw ? { containers: [...list, ...gone.map((n) => ({ name: n, $patch: 'delete' }))] } : {}),
        ...(ordered ? { '$setElementOrder/containers': order.map((n) => ({ name: n })) } : {}),
      },
    };
  });

test('property: applying twice is applying once, inputs stay as they are', (t) => {
  fc.assert(
    fc.property(document, patches, (live, patch) => {
      const once = apply(JSON.parse(JSON.stringify(live)), JSON.parse(JSON.stringify(patch)));
      t.deepEqual(apply(once, JSON.parse(JSON.stringify(patch))), once);
    }),
    { numRuns: 500 },
  );
});

test('property: items named by the order come in its order, the others in their own', (t) => {
  fc.assert(
    fc.property(containers, fc.uniqueArray(name), (live, order) => {
      const result = apply(
        spec({ containers: live }),
        spec({ '$setElementOrder/containers': order.map((n) => ({ name: n })) }),
      );
      const after = ((result as { spec: Json }).spec['containers'] as Json[]).map((c) => c['name'] as string);
      const before = live.map((c) => c.name);
      t.deepEqual([...after].sort(), [...before].sort());
      t.deepEqual(
        after.filter((n) => (order as string[]).includes(n)),
        order.filter((n) => (before as string[]).includes(n)),
      );
      t.deepEqual(
        after.filter((n) => !(order as string[]).includes(n)),
        before.filter((n) => !(order as string[]).includes(n)),
      );
    }),
    { numRuns: 500 },
  );
});
