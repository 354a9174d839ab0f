import {
  type AdmissionPlugin,
  type ConnectCall,
  defineKind,
  fieldError,
  filled,
  internalContext,
  optional,
  required,
  s,
  statusErrors,
} from '@keelson/core';
import { objectKey, QueryParameters } from '@keelson/core/internal';
import { test } from './both-forms.ts';
import { createPlane, failure, json, lenient } from './harness.ts';

const context = internalContext();
const a = { namespace: 'n', name: 'a' };

/** A kind whose hooks record their calls. */
function recordingKind(calls: string[]) {
  const hook = (name: string) => () => {
    calls.push(name);
  };
  const check = (name: string) => () => {
    calls.push(name);
    return [];
  };
  return defineKind({
    group: 'test.example.com',
    version: 'v1',
    kind: 'Recorder',
    schema: s.message('example.Recorder', 'Records.', {
      spec: required(2, s.message('example.RecorderSpec', 'Spec.', { n: optional(1, s.int32(), 'N.') }), 'Spec.'),
      status: filled(
        3,
        s.message('example.RecorderStatus', 'Status.', { seen: optional(1, s.int32(), 'Seen.') }),
        'Status.',
      ),
    }),
    strategy: {
      default: hook('default'),
      prepareForCreate: hook('prepareForCreate'),
      prepareForUpdate: hook('prepareForUpdate'),
      prepareForStatusUpdate: hook('prepareForStatusUpdate'),
      validate: check('validate'),
      validateCreate: check('validateCreate'),
      validateUpdate: check('validateUpdate'),
      validateStatusUpdate: check('validateStatusUpdate'),
      warnings: check('warnings'),
      heldBack: () => {
        calls.push('heldBack');
        return false;
      },
      ttlMs: () => {
        calls.push('ttlMs');
        return undefined;
      },
      beginDeletion: hook('beginDeletion'),
    },
    subresources: [
      { type: 'status', name: 'status' },
      { type: 'replace', name: 'part', patchable: true, apply: (stored, object) => (stored.spec = object.spec) },
    ],
  });
}

test('hooks and admission run in the order that the contract of a strategy states', async (t) => {
  const calls: string[] = [];
  const kind = recordingKind(calls);
  const plugin: AdmissionPlugin = {
    name: 'recorder',
    mutate: () => void calls.push('mutate'),
    validate: () => void calls.push('admit'),
  };
  const plane = await createPlane(t, { kinds: [kind], admission: [plugin] });
  const service = plane.service(kind);
  const status = kind.subresources.find(({ name }) => name === 'status');
  const part = kind.subresources.find(({ name }) => name === 'part');
  if (status === undefined || part === undefined) throw new Error('missing subresource');
  const body = (n: number, finalizers: string[] = []) =>
    json({ metadata: { name: 'a', finalizers }, spec: { n }, status: { seen: n } });
  const recorded = async (run: () => Promise<unknown>) => {
    calls.length = 0;
    await run();
    return calls.join(' ');
  };

  t.is(
    await recorded(() => service.create(context, { namespace: 'n' }, body(1, ['x/y']), lenient)),
    'default mutate prepareForCreate validate validateCreate warnings admit ttlMs',
  );
  t.is(
    await recorded(() => service.update(context, a, body(2, ['x/y']), lenient)),
    'default mutate prepareForUpdate validate validateUpdate warnings admit ttlMs',
  );
  t.is(
    await recorded(() => service.patch(context, a, { type: 'merge', bytes: Buffer.from('{"spec":{"n":3}}') }, lenient)),
    'default mutate prepareForUpdate validate validateUpdate warnings admit ttlMs',
  );
  t.is(
    await recorded(() => service.updateSubresource(context, a, status, body(4, ['x/y']), lenient)),
    'default mutate prepareForStatusUpdate validateStatusUpdate admit ttlMs',
  );
  t.is(
    await recorded(() => service.updateSubresource(context, a, part, body(5, ['x/y']), lenient)),
    'mutate validate admit ttlMs',
  );
  t.is(
    await recorded(() =>
      service.patchSubresource(context, a, part, { type: 'merge', bytes: Buffer.from('{"spec":{"n":6}}') }, lenient),
    ),
    'mutate validate admit ttlMs',
  );
  t.is(await recorded(() => service.delete(context, a, { dryRun: false })), 'mutate admit beginDeletion ttlMs');
  t.is(
    await recorded(() => service.update(context, a, body(6), lenient)),
    'default mutate prepareForUpdate validate validateUpdate warnings admit heldBack',
  );
  t.like(
    await failure(() => service.get(context, a, { export: false, exact: false, resourceVersion: '' })),
    { code: 404 },
    'the update removed the last finalizer, which removes the object',
  );
});

test('a body that does not fit its schema reaches no hook and no mutating admission', async (t) => {
  const calls: string[] = [];
  const kind = recordingKind(calls);
  const plugin: AdmissionPlugin = { name: 'recorder', mutate: () => void calls.push('mutate') };
  const plane = await createPlane(t, { kinds: [kind], admission: [plugin] });
  const service = plane.service(kind);
  t.like(await failure(() => service.create(context, { namespace: 'n' }, json({ metadata: { name: 'a' } }), lenient)), {
    code: 422,
    message: 'Recorder.test.example.com "a" is invalid: spec: Required value',
  });
  t.deepEqual(calls, []);
  await service.create(context, { namespace: 'n' }, json({ metadata: { name: 'a' }, spec: {} }), lenient);
  calls.length = 0;
  t.like(await failure(() => service.update(context, a, json({ metadata: { name: 'a' } }), lenient)), { code: 422 });
  t.deepEqual(calls, []);
});

function connectedKind(calls: ConnectCall[]) {
  const parameter = (name: string, type: 'boolean' | 'integer' | 'string' | 'strings' | 'time' | 'ports') => ({
    name,
    type,
    description: name,
  });
  return defineKind({
    group: 'test.example.com',
    version: 'v1',
    kind: 'Machine',
    schema: s.message('example.Machine', 'A machine.', { note: optional(2, s.string(), 'Note.') }),
    subresources: [
      {
        type: 'connect',
        name: 'log',
        verbs: ['get'],
        optionsKind: { group: 'test.example.com', version: 'v1', kind: 'LogOptions' },
        parameters: [
          parameter('follow', 'boolean'),
          parameter('lines', 'integer'),
          parameter('container', 'string'),
          parameter('command', 'strings'),
          parameter('since', 'time'),
          parameter('ports', 'ports'),
        ],
        upgrades: false,
        validate: (options) => (options['lines'] === 13 ? [fieldError.invalid('lines', 13, 'must not be 13')] : []),
        parentName: (name) => name.split(':').at(-1) ?? name,
        locate: (call) => {
          calls.push(call);
          return { to: 'nothing' };
        },
      },
    ],
  });
}

test('a connect call has checked options, passes admission and reads its parent', async (t) => {
  const calls: ConnectCall[] = [];
  const kind = connectedKind(calls);
  const admitted: string[] = [];
  const plugin: AdmissionPlugin = {
    name: 'recorder',
    validate: ({ operation, subresource, name, namespace, object, dryRun }) =>
      void admitted.push(`${operation} ${namespace}/${name}/${subresource} ${object?.kind} ${dryRun}`),
  };
  const plane = await createPlane(t, { kinds: [kind], admission: [plugin] });
  const service = plane.service(kind);
  await service.create(context, { namespace: 'n' }, json({ metadata: { name: 'a' }, note: 'hello' }), lenient);
  admitted.length = 0;
  const [subresource] = kind.subresources;
  if (subresource?.type !== 'connect') throw new Error('missing subresource');
  const connect = (query: string, name = 'http:a') =>
    service.connect(context, { namespace: 'n', name }, subresource, {
      query: new QueryParameters(query),
      path: '/rest',
    });

  const query =
    'follow=1&lines=-5&container=c&command=a&command=b&since=2026-01-02T03:04:05Z&ports=80,443&ports=8080&other=x';
  t.deepEqual(await connect(query), { to: 'nothing' });
  t.deepEqual(admitted, ['connect n/http:a/log LogOptions false']);
  const read = { query: new QueryParameters(''), path: '/' };
  await service.connect(context, { namespace: 'n', name: 'a' }, { ...subresource, skipsAdmission: true }, read);
  t.is(admitted.length, 1, 'a read passes no admission');
  calls.pop();
  t.like(calls[0], { name: 'http:a', path: '/rest', query });
  t.like(calls[0]?.parent, { note: 'hello' });
  t.deepEqual(
    { ...calls[0]?.options },
    {
      kind: 'LogOptions',
      apiVersion: 'test.example.com/v1',
      follow: true,
      lines: -5,
      container: 'c',
      command: ['a', 'b'],
      since: '2026-01-02T03:04:05Z',
      ports: [80, 443, 8080],
    },
  );
  t.is(
    (await calls[0]?.read({ group: 'test.example.com', version: 'v1', resource: 'machines' }, 'a', 'n'))?.kind,
    'Machine',
  );
  t.is(await calls[0]?.read({ group: 'test.example.com', version: 'v1', resource: 'machines' }, 'b', 'n'), undefined);
  await connect('lines=&container=&since=');
  t.deepEqual(Object.keys(calls[1]?.options ?? {}), ['kind', 'apiVersion']);

  const refused = [
    ['lines=x', 400],
    ['since=yesterday', 400],
    ['ports=80,x', 400],
    ['ports=65536', 400],
    ['lines=13', 422],
  ] as const;
  for (const [bad, code] of refused) t.like(await failure(() => connect(bad)), { code }, bad);
  t.like(await failure(() => connect('', 'http:b')), { code: 404 });
  t.is(calls.length, 2);
});

test('an object whose bytes cannot be decoded is deleted only with the option for it', async (t) => {
  const kind = recordingKind([]);
  const plane = await createPlane(t, { kinds: [kind] });
  const service = plane.service(kind);
  const key = objectKey(kind, 'n', 'a');
  const written = await plane.store.write({ op: 'put', key, value: Buffer.from('{"metadata":{broken'), expect: 0 });
  t.true(written.ok);
  const ignoring = { dryRun: false, ignoreStoreReadErrorWithClusterBreakingPotential: true };
  t.like(await failure(() => service.delete(context, a, { dryRun: false })), { code: 500 });
  const reader = { ...context, user: { name: 'reader', groups: [] } };
  t.like(await failure(() => service.delete(reader, a, ignoring)), { code: 403 });
  t.like(await service.delete(context, a, ignoring), { code: 200, object: { status: 'Success' } });
  t.like(await failure(() => service.delete(context, a, ignoring)), { code: 404 });
});

test('a readable object is deleted in the ordinary way although read errors may be ignored', async (t) => {
  const kind = recordingKind([]);
  const plane = await createPlane(t, { kinds: [kind] });
  const service = plane.service(kind);
  const body = json({ metadata: { name: 'a', finalizers: ['x/y'] }, spec: {} });
  await service.create(context, { namespace: 'n' }, body, lenient);
  await service.delete(context, a, { dryRun: false, ignoreStoreReadErrorWithClusterBreakingPotential: true });
  const stored = await plane.client.resource(kind).namespace('n').get('a');
  t.deepEqual(stored.metadata?.finalizers, ['x/y']);
  t.not(stored.metadata?.deletionTimestamp, undefined);
});

test('an asynchronous plugin completes before the version check, validation and write of an update', async (t) => {
  const kind = recordingKind([]);
  const plugin: AdmissionPlugin = {
    name: 'slow',
    mutate: async ({ object }) => {
      await new Promise((resolve) => setImmediate(resolve));
      if (object !== undefined) object.metadata = { ...object.metadata, labels: { admitted: 'yes' } };
    },
  };
  const plane = await createPlane(t, { kinds: [kind], admission: [plugin] });
  const service = plane.service(kind);
  const read = async () => (await plane.client.resource(kind).namespace('n').get('a')).metadata?.labels;
  await service.create(context, { namespace: 'n' }, json({ metadata: { name: 'a' }, spec: {} }), lenient);
  t.deepEqual(await read(), { admitted: 'yes' });
  await service.update(context, a, json({ metadata: { name: 'a' }, spec: { n: 2 } }), lenient);
  t.deepEqual(await read(), { admitted: 'yes' });
});

test('a write waits for the decision of an asynchronous validating plugin', async (t) => {
  const kind = recordingKind([]);
  let strict = false;
  const plugin: AdmissionPlugin = {
    name: 'slow',
    handles: () => strict,
    validate: async () => {
      await new Promise((resolve) => setImmediate(resolve));
      throw statusErrors.forbidden({ group: kind.group, resource: kind.names.plural }, 'a', 'not now');
    },
  };
  const plane = await createPlane(t, { kinds: [kind], admission: [plugin] });
  const recorders = plane.client.resource(kind).namespace('n');
  const created = await recorders.create({ metadata: { name: 'a' }, spec: { n: 1 } } as never);
  strict = true;
  for (const write of [
    () => recorders.create({ metadata: { name: 'b' }, spec: {} } as never),
    () => recorders.update({ ...created, spec: { n: 2 } }),
    () => recorders.patch('a', 'merge', { spec: { n: 3 } }),
    () => recorders.delete('a'),
  ]) {
    t.like(await failure(write), { code: 403 });
  }
  t.deepEqual((await recorders.list()).items, [created]);
});

test('a delete of a collection cannot ignore read errors', async (t) => {
  const kind = recordingKind([]);
  const plane = await createPlane(t, { kinds: [kind] });
  const options = { dryRun: false, ignoreStoreReadErrorWithClusterBreakingPotential: true };
  const run = () => plane.service(kind).deleteCollection(context, { namespace: 'n' }, options, { resourceVersion: '' });
  t.like(await failure(run), { code: 422, details: { kind: 'DeleteOptions' } });
});
