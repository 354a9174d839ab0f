import { type AdmissionPlugin, internalContext, type KubeObject, statusErrors } from '@keelson/core';
import { encodeEnvelope, encodeProtobufObject, type NameGenerator } from '@keelson/core/internal';
import { test } from './both-forms.ts';
import { Cart, Gadget, Namespace, OldCart, Open, Ticket } from './fixtures.ts';
import { contextWith, createPlane, failure, json, lenient, storedCount, text } from './harness.ts';

const gadget = (name: string, spec: Record<string, unknown> = {}): KubeObject =>
  ({ metadata: { name, namespace: 'n' }, spec }) as KubeObject;

test("create sets the server's metadata fields and discards values that the client sent for them", async (t) => {
  const { client } = await createPlane(t);
  const created = await client.dynamic({ group: 'toys.example.com', version: 'v1', resource: 'gadgets' }).create({
    metadata: {
      name: 'a',
      namespace: 'n',
      uid: 'mine',
      resourceVersion: '0',
      selfLink: '/mine',
      generation: 9,
      creationTimestamp: '2001-01-01T00:00:00Z',
      deletionTimestamp: '2001-01-01T00:00:00Z',
      deletionGracePeriodSeconds: 5,
      managedFields: [],
      labels: { app: 'x' },
    },
    status: { phase: 'Done' },
  } as KubeObject);
  const { uid = '', ...meta } = created.metadata ?? {};
  t.regex(uid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  t.deepEqual(meta, {
    resourceVersion: '2',
    name: 'a',
    namespace: 'n',
    generation: 1,
    creationTimestamp: '2026-01-02T03:04:05Z',
    labels: { app: 'x' },
  });
  t.deepEqual({ ...created, metadata: undefined }, {
    kind: 'Gadget',
    apiVersion: 'toys.example.com/v1',
    metadata: undefined,
    spec: { replicas: 1 },
    status: {},
  } as never);
  t.deepEqual(await client.resource(Gadget).namespace('n').get('a'), created as never);
});

test('kinds without generation have none; cluster-scoped kinds lose a namespace', async (t) => {
  const { client } = await createPlane(t);
  const ticket = await client
    .resource(Ticket)
    .namespace('n')
    .create({ metadata: { name: 'a', generation: 4 }, count: 1 });
  t.is(ticket.metadata?.generation, undefined);
  const namespace = await client.resource(Namespace).create({ metadata: { name: 'x', namespace: 'y' } } as never);
  t.is(namespace.metadata?.namespace, undefined);
  t.deepEqual(namespace.status, { phase: 'Active' });
  t.is(namespace.metadata?.labels?.['kubernetes.io/metadata.name'], 'x');
});

test('bodies in protobuf: created like JSON, refused like JSON', async (t) => {
  const plane = await createPlane(t);
  const service = plane.service(Gadget);
  const create = (bytes: Buffer) =>
    service.create(internalContext(), { namespace: 'n' }, { bytes, format: 'protobuf' }, lenient);
  const { apiVersion, kind, schema } = Gadget;
  await create(encodeProtobufObject(schema, apiVersion, kind, gadget('a')));
  const sent = await create(encodeProtobufObject(schema, '', '', gadget('b')));
  const shown = await create(
    encodeProtobufObject(schema, apiVersion, kind, { metadata: { name: 'c', labels: { app: 'x' } } }),
  );
  t.is(sent.code, 201);
  t.is('stored' in shown && shown.stored.value().metadata?.labels?.['app'], 'x');
  const refusals: [bytes: Buffer, code: number, message: RegExp][] = [
    [Buffer.alloc(0), 400, /^object provided is unrecognized/],
    [
      Buffer.from('{}'),
      400,
      /^the object provided is unrecognized \(must be of type Gadget\): .*prefix.* \(7b7d "\{\}"\)$/,
    ],
    [Buffer.from('k8s\0\x0a\x05'), 400, /^the object provided is unrecognized/],
    [encodeEnvelope(apiVersion, kind, Buffer.of(0xff)), 400, /^the object provided is unrecognized/],
    [encodeEnvelope('v1', 'Lock', Buffer.of(0xff)), 400, /^Lock in version "v1" cannot be handled as a Gadget: /],
    [encodeEnvelope('v1', 'Ghost', Buffer.of(0xff)), 400, /^no kind "Ghost" is registered for version "v1"$/],
    [encodeEnvelope('v9', kind, Buffer.of(0xff)), 400, /does not match the expected API version/],
    [Buffer.from('k8s\0'), 422, /name/],
  ];
  for (const [bytes, code, message] of refusals) {
    const status = await failure(() => create(bytes));
    t.is(status.code, code, bytes.toString('hex'));
    t.regex(status.message ?? '', message);
  }
});

test('invalid bodies are rejected with 400 and the messages of Kubernetes', async (t) => {
  const plane = await createPlane(t);
  const service = plane.service(Gadget);
  const bodies: [body: string, message: RegExp][] = [
    ['', /^object provided is unrecognized/],
    ['{', /^the object provided is unrecognized \(must be of type Gadget\): .* \(7b "\{"\)$/],
    ['[]', /^the object provided is unrecognized .*not an object/],
    ['null', /^the object provided is unrecognized/],
    ['{"kind":"Ghost"}', /^no kind "Ghost" is registered for version "toys.example.com\/v1"$/],
    ['{"kind":"Lock","apiVersion":"v1"}', /^Lock in version "v1" cannot be handled as a Gadget: /],
    [
      '{"kind":"Gadget","apiVersion":"v9"}',
      /^the API version in the data \(v9\) does not match the expected API version \(toys.example.com\/v1\)$/,
    ],
    ['{"kind":7}', /cannot be handled as a Gadget: field kind: expected string, got number/],
    ['{"metadata":[]}', /cannot be handled as a Gadget: field metadata: expected object, got array/],
    ['{"metadata":{"name":{}}}', /field metadata.name: expected string, got object/],
    ['{"spec":{"replicas":"3"}}', /field spec.replicas: expected .*, got string/],
    ['{"spec":{"ports":[{"number":1},{"number":true}]}}', /field spec.ports\[1\].number: expected .*, got boolean/],
    [
      '{"metadata":{"name":"a","namespace":"m"}}',
      /^the namespace of the provided object does not match the namespace sent on the request$/,
    ],
    ['{"metadata":{"name":"a","resourceVersion":"5"}}', /^resourceVersion should not be set on objects to be created$/],
  ];
  for (const [body, message] of bodies) {
    const status = await failure(() => service.create(internalContext(), { namespace: 'n' }, text(body), lenient));
    t.is(status.code, 400, body);
    t.regex(status.message ?? '', message, body);
  }
  t.is(
    (await failure(() => service.create(internalContext(), {}, json({ metadata: { name: 'a' } }), lenient))).code,
    400,
  );
  const open = { bytes: encodeEnvelope('custom.example.com/v1', 'Open', Buffer.alloc(0)), format: 'protobuf' } as const;
  t.is(
    (await failure(() => plane.service(Open).create(internalContext(), {}, open, lenient))).code,
    415,
    'no field numbers',
  );
  const old = await failure(() =>
    plane
      .service(Cart)
      .create(
        internalContext(),
        { namespace: 'n' },
        text('{"kind":"Cart","apiVersion":"old.example.com/v1beta1"}'),
        lenient,
      ),
  );
  t.is(
    old.message,
    'the API version in the data (old.example.com/v1beta1) does not match the expected API version (apps.example.com/v1)',
  );
  t.is(await storedCount(plane), 0);
});

test('YAML bodies are read like JSON, fields without kind and apiVersion take them from the path', async (t) => {
  const plane = await createPlane(t);
  const yaml = { bytes: Buffer.from('metadata:\n  name: a\nspec:\n  colour: red\n'), format: 'yaml' } as const;
  const answer = await plane.service(Gadget).create(internalContext(), { namespace: 'n' }, yaml, lenient);
  t.is(answer.code, 201);
  t.like(await plane.client.resource(Gadget).namespace('n').get('a'), {
    kind: 'Gadget',
    apiVersion: 'toys.example.com/v1',
  });
});

test('422 lists every fault of an object with its field, and nothing is stored', async (t) => {
  const plane = await createPlane(t);
  const cases: [KubeObject, string[]][] = [
    [{ metadata: { namespace: 'n' } }, ['metadata.name']],
    [gadget('UPPER_case'), ['metadata.name']],
    [gadget('x'.repeat(254)), ['metadata.name']],
    [
      gadget('a', { colour: 'mauve', ports: [{ name: 'p' }], replicas: -1 }),
      ['spec.replicas', 'spec.colour', 'spec.ports[0].number'],
    ],
    [gadget('a', { paused: true, replicas: 99 }), ['spec.paused']],
    [
      { metadata: { name: 'a', namespace: 'n', labels: { 'bad key!': 'x' }, finalizers: ['nope'] } },
      ['metadata.labels', 'metadata.finalizers[0]'],
    ],
  ];
  for (const [object, fields] of cases) {
    const status = await failure(() =>
      plane.client
        .resource(Gadget)
        .namespace('n')
        .create(object as never),
    );
    t.deepEqual(
      [status.code, status.reason, status.details?.kind],
      [422, 'Invalid', 'Gadget'],
      JSON.stringify(object).slice(0, 99),
    );
    t.deepEqual(status.details?.causes?.map((cause) => cause.field).sort(), fields.sort());
  }
  const missing = await failure(() =>
    plane.client
      .resource(Gadget)
      .namespace('n')
      .create({} as never),
  );
  t.is(
    missing.message,
    'Gadget.toys.example.com "" is invalid: metadata.name: Required value: name or generateName is required',
  );
  t.is(await storedCount(plane), 0);
});

test('an existing name is a 409, and the response states when it is about to become free', async (t) => {
  const { client } = await createPlane(t);
  const gadgets = client.resource(Gadget).namespace('n');
  await gadgets.create({ metadata: { name: 'a', finalizers: ['x/y'] } } as never);
  const again = () => gadgets.create(gadget('a') as never);
  t.like(await failure(again), {
    code: 409,
    reason: 'AlreadyExists',
    message: 'gadgets.toys.example.com "a" already exists',
  });
  await gadgets.delete('a');
  t.is((await failure(again)).message, 'object is being deleted: gadgets.toys.example.com "a" already exists');
});

function counting(names: readonly string[]): NameGenerator & { calls: number } {
  const generate = (base: string) => base + (names[generate.calls++] ?? 'rest');
  generate.calls = 0;
  return generate;
}

test('generateName tries up to eight names, keeps the base, and gives up with 409 and Retry-After', async (t) => {
  const lucky = counting(['1', '1', '1', '2']);
  const { client } = await createPlane(t, { generateName: lucky });
  const gadgets = client.resource(Gadget).namespace('n');
  t.is((await gadgets.create({ metadata: { generateName: 'g-' } } as never)).metadata?.name, 'g-1');
  t.like((await gadgets.create({ metadata: { generateName: 'g-' } } as never)).metadata, {
    name: 'g-2',
    generateName: 'g-',
  });
  t.is(lucky.calls, 4);
  const unlucky = counting(Array(20).fill('1'));
  const other = await createPlane(t, { generateName: unlucky });
  const theirs = other.client.resource(Gadget).namespace('n');
  await theirs.create({ metadata: { generateName: 'g-' } } as never);
  const status = await failure(() => theirs.create({ metadata: { generateName: 'g-' } } as never));
  t.is(unlucky.calls, 9);
  t.like(status, { code: 409, reason: 'AlreadyExists', details: { retryAfterSeconds: 1, name: 'g-1' } });
  t.regex(status.message ?? '', /the server was not able to generate a unique name for the object$/);
});

test('repeated keys of YAML are reported by line, as Kubernetes does, before unknown fields', async (t) => {
  const plane = await createPlane(t);
  const bytes = Buffer.from('metadata:\n  name: a\nspec:\n  colour: red\n  x: 1\n  colour: blue\n');
  const create = (fieldValidation: 'Strict' | 'Warn', warnings: string[]) =>
    plane.service(Gadget).create(
      contextWith((remark) => warnings.push(remark)),
      { namespace: 'n' },
      { bytes, format: 'yaml' },
      { dryRun: true, fieldValidation },
    );
  t.is(
    (await failure(() => create('Strict', []))).message,
    'Gadget in version "v1" cannot be handled as a Gadget: ' +
      'strict decoding error: yaml: unmarshal errors:\n  line 6: key "colour" already set in map, unknown field "spec.x"',
  );
  const warned: string[] = [];
  await create('Warn', warned);
  t.deepEqual(warned, ['line 6: key "colour" already set in map', 'unknown field "spec.x"']);
});

test('fieldValidation: Strict refuses unknown and duplicate fields, Warn names them, Ignore is silent; none is stored', async (t) => {
  const plane = await createPlane(t);
  const body = text('{"metadata":{"name":"a"},"spec":{"colour":"red","x":1,"colour":"blue"},"y":{"__proto__":1}}');
  const create = (fieldValidation: 'Strict' | 'Warn' | 'Ignore', warnings: string[]) =>
    plane.service(Gadget).create(
      contextWith((remark) => warnings.push(remark)),
      { namespace: 'n' },
      body,
      { dryRun: false, fieldValidation },
    );
  const strict = await failure(() => create('Strict', []));
  t.is(strict.code, 400);
  t.is(
    strict.message,
    'Gadget in version "v1" cannot be handled as a Gadget: ' +
      'strict decoding error: unknown field "y", unknown field "spec.x", duplicate field "spec.colour"',
  );
  t.is(await storedCount(plane), 0);
  const warned: string[] = [];
  await create('Warn', warned);
  t.deepEqual(warned, ['unknown field "y"', 'unknown field "spec.x"', 'duplicate field "spec.colour"']);
  const stored = await plane.client.resource(Gadget).namespace('n').get('a');
  t.deepEqual([stored.spec, Object.keys(stored)], [
    { replicas: 1, colour: 'blue' },
    ['kind', 'apiVersion', 'metadata', 'spec', 'status'],
  ] as never);
  await plane.client.resource(Gadget).namespace('n').delete('a');
  const silent: string[] = [];
  await create('Ignore', silent);
  t.deepEqual(silent, []);
});

test('a dry run performs every step except the write to the store', async (t) => {
  const plane = await createPlane(t);
  const gadgets = plane.client.resource(Gadget).namespace('n');
  const answer = await gadgets.create(gadget('a') as never, { dryRun: true });
  t.like(answer, { metadata: { name: 'a', creationTimestamp: '2026-01-02T03:04:05Z' }, spec: { replicas: 1 } });
  t.truthy(answer.metadata?.uid);
  t.is(await storedCount(plane), 0);
  t.is((await failure(() => gadgets.create(gadget('a', { replicas: -1 }) as never, { dryRun: true }))).code, 422);
  await gadgets.create(gadget('a') as never);
  t.is((await failure(() => gadgets.create(gadget('a') as never, { dryRun: true }))).code, 409);
});

test('admission sees the defaulted object, may change it, and refuses with its own Status', async (t) => {
  const seen: string[] = [];
  const plugin: AdmissionPlugin = {
    name: 'test',
    mutate: ({ operation, object, name, namespace, dryRun }) => {
      const { spec } = object as unknown as { spec: { replicas: number; colour?: string } };
      seen.push(`${operation} ${namespace}/${name} ${spec.replicas} ${dryRun}`);
      spec.colour = 'blue';
    },
    validate: ({ object, kind, name }) => {
      if (object?.metadata?.labels?.['bad']) {
        throw statusErrors.forbidden({ group: kind.group, resource: kind.names.plural }, name, 'bad label');
      }
    },
  };
  const plane = await createPlane(t, { admission: [plugin] });
  const gadgets = plane.client.resource(Gadget).namespace('n');
  t.is((await gadgets.create(gadget('a') as never)).spec.colour, 'blue');
  t.deepEqual(seen, ['create n/a 1 false']);
  const status = await failure(() => gadgets.create({ metadata: { name: 'b', labels: { bad: 'x' } } } as never));
  t.like(status, { code: 403, reason: 'Forbidden', message: 'gadgets.toys.example.com "b" is forbidden: bad label' });
  t.is(await storedCount(plane), 1);
});

test('a create in a missing namespace is 404, in a terminating one 403, and a stale cache causes neither', async (t) => {
  let stale: 'missing' | undefined;
  const plane = await createPlane(t, {
    lifecycle: true,
    wrap: (storages) => ({
      ...storages,
      forKind: (kind) => {
        const storage = storages.forKind(kind);
        return new Proxy(storage, {
          get: (target, property) => {
            if (property === 'get' && stale === 'missing') {
              return (key: string, at: { at: string }, options: never) =>
                at.at === 'any' ? Promise.resolve(undefined) : target.get(key, at as never, options);
            }
            const value: unknown = Reflect.get(target, property, target);
            return typeof value === 'function' ? value.bind(target) : value;
          },
        });
      },
    }),
  });
  const gadgets = plane.client.resource(Gadget).namespace('n');
  t.like(await failure(() => gadgets.create(gadget('a') as never)), {
    code: 404,
    message: 'namespaces "n" not found',
    details: { name: 'n', kind: 'namespaces' },
  });
  await plane.client.resource(Namespace).create({ metadata: { name: 'n' } } as never);
  stale = 'missing';
  t.is((await gadgets.create(gadget('a') as never)).metadata?.name, 'a');
  stale = undefined;
  await plane.client.resource(Namespace).delete('n');
  const status = await failure(() => gadgets.create(gadget('b') as never));
  t.like(status, {
    code: 403,
    message:
      'gadgets.toys.example.com "b" is forbidden: unable to create new content in namespace n because it is being terminated',
  });
  t.like(status.details?.causes?.[0], { reason: 'NamespaceTerminating', field: 'metadata.namespace' });
  t.is(
    (await gadgets.patch('a', 'merge', { spec: { colour: 'red' } })).spec.colour,
    'red',
    'updates are still allowed',
  );
  t.is(
    (await plane.client.resource(Open).create({ metadata: { name: 'o' } })).metadata?.name,
    'o',
    'cluster scope is not concerned',
  );
  t.is(
    (
      await failure(() =>
        plane.client
          .resource(Ticket)
          .namespace('x/../n')
          .create({ metadata: { name: 'a' } } as never),
      )
    ).code,
    404,
  );
});

test('kinds that share storage: written in one version, read in both', async (t) => {
  const plane = await createPlane(t);
  const old = await plane.client
    .resource(OldCart)
    .namespace('n')
    .create({ metadata: { name: 'a' }, spec: { weight: 4 } } as never);
  t.like(old, { apiVersion: 'old.example.com/v1beta1', spec: { weight: 4 } } as never);
  const cart = await plane.client.resource(Cart).namespace('n').get('a');
  t.deepEqual(cart, { ...old, apiVersion: 'apps.example.com/v1', spec: { load: 4 } } as never);
  const answer = await plane
    .service(OldCart)
    .get(internalContext(), { namespace: 'n', name: 'a' }, { export: false, exact: false, resourceVersion: '' });
  t.true(
    'stored' in answer && answer.kind === OldCart && answer.stored.json.includes('"load":4'),
    'stored bytes go out as they are',
  );
});

test('selfLink is the path of the object where the option is on', async (t) => {
  const { client } = await createPlane(t, { selfLinks: true });
  const path = '/apis/toys.example.com/v1/namespaces/n/gadgets/a';
  const created = await client
    .resource(Gadget)
    .namespace('n')
    .create({ metadata: { name: 'a', selfLink: '/mine' } } as never);
  t.is(created.metadata?.selfLink, path);
  t.is(
    (
      await client
        .resource(Gadget)
        .namespace('n')
        .update({ ...created, metadata: { ...created.metadata, selfLink: '' } })
    ).metadata?.selfLink,
    path,
  );
  t.is(
    (await client.resource(Open).create({ metadata: { name: 'o' } })).metadata?.selfLink,
    '/apis/custom.example.com/v1/opens/o',
  );
});

test('an aborted request stores nothing and answers 504', async (t) => {
  const plane = await createPlane(t);
  const signal = AbortSignal.abort();
  const gadgets = plane.client.resource(Gadget).namespace('n');
  t.is((await failure(() => gadgets.create(gadget('a') as never, { signal }))).code, 504);
  t.is(await storedCount(plane), 0);
  await gadgets.create(gadget('a') as never);
  t.is((await failure(() => gadgets.patch('a', 'merge', { spec: { replicas: 5 } }, { signal }))).code, 504);
  t.is((await failure(() => gadgets.delete('a', { signal }))).code, 504);
  t.is((await gadgets.get('a')).spec.replicas, 1);
});
