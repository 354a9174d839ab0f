import { internalContext, isStatusError, type KubeObject } from '@keelson/core';
import fc from 'fast-check';
import { test } from './both-forms.ts';
import { Gadget, Ticket } from './fixtures.ts';
import { createPlane, failure, lenient, storedCount, text } from './harness.ts';

/** Every field of a gadget with a fitting value. */
const sample = {
  metadata: {
    name: 'a',
    labels: { app: 'x' },
    annotations: { note: 'x' },
    finalizers: ['x.example.com/y'],
    ownerReferences: [{ apiVersion: 'v1', kind: 'Lock', name: 'l', uid: 'u', controller: true }],
  },
  spec: {
    replicas: 3,
    colour: 'red',
    ports: [{ name: 'p', number: 80 }],
    settings: { k: 'v' },
    paused: true,
    size: '1Gi',
    extra: { any: [1] },
    graceSeconds: 5,
    selector: { a: 'b' },
  },
  status: { phase: 'x', replicas: 1 },
};

type Path = readonly (string | number)[];

/** Paths of all values of a JSON document, but not into free-form parts. */
function paths(value: unknown, at: Path = []): Path[] {
  if (typeof value !== 'object' || value === null || at.at(-1) === 'extra') return [at];
  return [
    at,
    ...Object.keys(value).flatMap((key) =>
      paths((value as Record<string, unknown>)[key], [...at, Array.isArray(value) ? Number(key) : key]),
    ),
  ];
}

function replaced(document: unknown, path: Path, value: unknown): unknown {
  const copy = JSON.parse(JSON.stringify(document)) as unknown;
  let parent = copy as Record<string | number, unknown>;
  for (const step of path.slice(0, -1)) parent = parent[step] as Record<string | number, unknown>;
  parent[path.at(-1) ?? ''] = value;
  return copy;
}

function at(document: unknown, path: Path): unknown {
  return path.reduce((value, step) => (value as Record<string | number, unknown>)[step], document);
}

const typeOf = (value: unknown) => (Array.isArray(value) ? 'array' : typeof value);
const fields = paths(sample).filter((path) => path.length > 0);
const foreign = fc.oneof(
  fc.string(),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.array(fc.integer()),
  fc.dictionary(fc.string(), fc.integer()),
);

test('a wrong type in any field: 400 on POST, 422 on the field patch on PATCH, and nothing is stored', async (t) => {
  const plane = await createPlane(t);
  const gadgets = plane.client.resource(Gadget).namespace('n');
  t.is((await gadgets.create(sample as never, { dryRun: true })).metadata?.name, 'a', 'the sample itself is good');
  await gadgets.create({ metadata: { name: 'base' }, spec: sample.spec } as never);
  const before = await plane.store.currentRevision();
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...fields), foreign, async (path, value) => {
      // A date, quantity or word of the right JSON type is a matter of validation; see the next test.
      fc.pre(typeOf(value) !== typeOf(at(sample, path)));
      fc.pre(!(path.at(-1) === 'size' && typeof value === 'number'));
      const posted = await failure(() => gadgets.create(replaced(sample, path, value) as never));
      if (posted.code !== 400)
        throw new Error(`POST ${path.join('.')} = ${JSON.stringify(value)}: ${posted.code} ${posted.message}`);
      const fitting = path[0] === 'metadata' && path[1] === 'name' ? { metadata: { name: value } } : undefined;
      const patch = fitting ?? {
        [path[0] as string]: (replaced(sample, path, value) as Record<string, unknown>)[path[0] as string],
      };
      if (path[0] === 'metadata' && !fitting && typeof patch['metadata'] === 'object')
        (patch['metadata'] as Record<string, unknown>)['name'] = 'base';
      const patched = await failure(() => gadgets.patch('base', 'merge', patch));
      if (patched.code !== 422)
        throw new Error(`PATCH ${path.join('.')} = ${JSON.stringify(value)}: ${patched.code} ${patched.message}`);
    }),
    { numRuns: 400 },
  );
  t.is(await plane.store.currentRevision(), before);
});

test('every JSON body is stored completely or rejected with a Status of code 4xx', async (t) => {
  const plane = await createPlane(t);
  const service = plane.service(Gadget);
  const keys = fc.oneof(
    fc.constantFrom(
      'kind',
      'apiVersion',
      'metadata',
      'spec',
      'status',
      '__proto__',
      'constructor',
      'toString',
      'name',
      'labels',
    ),
    fc.string(),
  );
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small' },
      foreign,
      fc.constant(null),
      fc.array(tie('tree'), { maxLength: 4 }),
      fc.dictionary(keys, tie('tree'), { maxKeys: 6 }),
    ),
  }));
  await fc.assert(
    fc.asyncProperty(tree, fc.constantFrom('json', 'merge', 'strategic'), async (value, type) => {
      const bytes = Buffer.from(JSON.stringify(value));
      const attempts = [
        () =>
          service.create(
            internalContext(),
            { namespace: 'n' },
            { bytes, format: 'json' },
            { dryRun: true, fieldValidation: 'Warn' },
          ),
        () =>
          service.update(
            internalContext(),
            { namespace: 'n', name: 'a' },
            { bytes, format: 'json' },
            { dryRun: true, fieldValidation: 'Strict' },
          ),
        () =>
          service.patch(
            internalContext(),
            { namespace: 'n', name: 'a' },
            { bytes, type },
            { dryRun: true, fieldValidation: 'Warn' },
          ),
      ];
      for (const attempt of attempts) {
        try {
          await attempt();
        } catch (error) {
          if (!isStatusError(error) || error.code < 400 || error.code >= 500) throw error;
        }
      }
    }),
    { numRuns: 400 },
  );
  t.is(await storedCount(plane), 0);
  t.is(({} as Record<string, unknown>)['polluted'], undefined);
});

test('__proto__ is data: stored, patched and listed like any other key, and it pollutes nothing', async (t) => {
  const plane = await createPlane(t);
  const gadgets = plane.client.resource(Gadget).namespace('n');
  const body =
    '{"metadata":{"name":"a","__proto__":{"polluted":1}},"__proto__":{"polluted":1},"spec":{"settings":{"__proto__":"x","constructor":"y"},"extra":{"__proto__":{"polluted":true}}}}';
  await plane.service(Gadget).create(internalContext(), { namespace: 'n' }, text(body), lenient);
  const check = async () => {
    const object = await gadgets.get('a');
    t.is(JSON.stringify(object.spec.settings), '{"__proto__":"x","constructor":"y"}');
    t.is(JSON.stringify(object.spec.extra), '{"__proto__":{"polluted":true}}');
    t.is((object as unknown as Record<string, unknown>)['polluted'], undefined);
    t.is(({} as Record<string, unknown>)['polluted'], undefined);
    return object;
  };
  const object = await check();
  await plane
    .service(Gadget)
    .patch(
      internalContext(),
      { namespace: 'n', name: 'a' },
      { type: 'merge', bytes: Buffer.from('{"__proto__":{"polluted":1},"status":{"__proto__":1}}') },
      lenient,
    );
  await check();
  await gadgets.patchSubresource('a', 'status', 'merge', { status: { phase: 'x' } });
  await check();
  await gadgets.patch('a', 'merge', { spec: { replicas: 9 } });
  await check();
  t.is((await failure(() => gadgets.update(object))).code, 409);
});

test('sizes: huge names and namespaces, deep documents, big objects', async (t) => {
  const plane = await createPlane(t);
  const tickets = plane.client.resource(Ticket);
  const huge = 'x'.repeat(1_000_000);
  t.is((await failure(() => tickets.namespace('n').create({ metadata: { name: huge } } as never))).code, 422);
  t.is((await failure(() => tickets.namespace(huge).create({ metadata: { name: 'a' } } as never))).code, 422);
  t.is(
    (await failure(() => tickets.namespace('n').create({ metadata: { generateName: '-'.repeat(1000) } } as never)))
      .code,
    422,
  );
  t.is((await failure(() => tickets.namespace(huge).get('a'))).code, 404);
  t.is((await failure(() => tickets.namespace('n').delete(huge))).code, 404);
  t.is((await failure(() => tickets.namespace('n').patch(huge, 'merge', {}))).code, 404);
  const deep = `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`;
  t.is(
    (await failure(() => plane.service(Ticket).create(internalContext(), { namespace: 'n' }, text(deep), lenient)))
      .code,
    400,
  );
  const tooBig = { metadata: { name: 'big', namespace: 'n' }, note: 'x'.repeat(4 * 1024 * 1024) } as KubeObject;
  t.is((await failure(() => tickets.create(tooBig as never))).code, 413);
  t.is(await storedCount(plane), 0);
});
