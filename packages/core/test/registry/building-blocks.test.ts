import test from 'ava';
import fc from 'fast-check';
import {
  type AdmissionPlugin,
  type AdmissionRequest,
  internalContext,
  type StatusError,
  StatusReason,
  StorageError,
  StorageErrorCode,
  statusErrors,
} from '../../src/index.ts';
import { StoredObject } from '../../src/internal.ts';
import { copyJson, equalJson } from '../../src/json/json.ts';
import type { AnyObject } from '../../src/meta/types.ts';
import { AdmissionChain } from '../../src/registry/admission.ts';
import { raiseGeneration } from '../../src/registry/common-fields.ts';
import { randomName } from '../../src/registry/create-operation.ts';
import { selectionOf } from '../../src/registry/predicate.ts';
import { translateError, watchErrorStatus } from '../../src/registry/translate-error.ts';
import { Place, Widget } from './fixtures/kinds.ts';

test('copyJson gives an equal, unshared value; equalJson ignores key order and undefined members', (t) => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const parsed: unknown = JSON.parse(JSON.stringify(value));
      const copy = copyJson(parsed);
      t.is(JSON.stringify(copy), JSON.stringify(parsed));
      t.true(equalJson(copy, parsed));
      if (typeof parsed === 'object' && parsed !== null) t.not(copy, parsed);
    }),
  );
  const hostile: unknown = JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":1}}');
  const copy = copyJson(hostile) as Record<string, unknown>;
  t.is(JSON.stringify(copy), JSON.stringify(hostile));
  t.is(copy['polluted'], undefined);
  t.true(equalJson({ a: 1, b: [{ c: 2, d: undefined }] }, { b: [{ c: 2 }], a: 1 }));
  for (const [a, b] of [
    [{ a: 1 }, { a: 1, b: 1 }],
    [
      { a: 1, b: undefined },
      { a: 1, b: 1 },
    ],
    [
      [1, 2],
      [2, 1],
    ],
    [[], {}],
    [{ a: null }, {}],
    [{ toString: 1 }, {}],
    [1, '1'],
  ]) {
    t.false(equalJson(a, b), JSON.stringify([a, b]));
    t.false(equalJson(b, a), JSON.stringify([b, a]));
  }
});

test('generated names: 58 characters of base at most, five of the alphabet', (t) => {
  for (const base of ['web-', 'x'.repeat(300)]) {
    t.regex(randomName(base), new RegExp(`^${base.slice(0, 58)}[bcdfghjklmnpqrstvwxz2456789]{5}$`));
  }
  t.true(new Set(Array.from({ length: 200 }, () => randomName('a'))).size > 190);
});

test('every storage failure has its Status', (t) => {
  const operation = {
    verb: 'update',
    resource: { group: 'apps', resource: 'widgets' },
    name: 'a',
    revision: 9,
  } as const;
  const expected: Record<StorageErrorCode, [number, string]> = {
    NotFound: [404, StatusReason.NotFound],
    AlreadyExists: [409, StatusReason.AlreadyExists],
    Conflict: [409, StatusReason.Conflict],
    Compacted: [410, StatusReason.Expired],
    EpochChanged: [410, StatusReason.Expired],
    SlowConsumer: [410, StatusReason.Expired],
    ExpiredToken: [410, StatusReason.Expired],
    InvalidToken: [410, StatusReason.Expired],
    FutureRevision: [504, StatusReason.Timeout],
    OutcomeUnknown: [504, StatusReason.Timeout],
    Timeout: [504, StatusReason.Timeout],
    Unavailable: [500, StatusReason.ServerTimeout],
    TooLarge: [413, StatusReason.RequestEntityTooLarge],
    InvalidKey: [400, StatusReason.BadRequest],
    Corrupt: [500, StatusReason.InternalError],
    Closed: [503, StatusReason.ServiceUnavailable],
  };
  for (const code of Object.values(StorageErrorCode)) {
    const translated = translateError(new StorageError(code, 'text', { revision: 5 }), operation);
    t.deepEqual([translated.code, translated.reason], expected[code], code);
  }
  const future = translateError(new StorageError('FutureRevision', 'text', { revision: 5 }), operation);
  t.is(future.message, 'Timeout: Too large resource version: 9, current: 5');
  t.is(future.status.details?.causes?.[0]?.reason, 'ResourceVersionTooLarge');
  const unknown = translateError(new StorageError('OutcomeUnknown', 'text'), operation);
  t.is(
    unknown.status.details?.retryAfterSeconds,
    undefined,
    'no retry is suggested for a write that may have been executed',
  );
  const own = statusErrors.badRequest('mine');
  t.is(translateError(own, operation), own);
  const bug = new TypeError('boom');
  const internal = translateError(bug, operation);
  t.deepEqual([internal.code, internal.cause], [500, bug]);
  t.is(translateError(new Error('aborted'), { ...operation, signal: AbortSignal.abort() }).code, 504);
});

test('the end of a watch: interruptions are 503 and other failures those of every operation', (t) => {
  const resource = { group: 'apps', resource: 'widgets' };
  const statusOf = (code: StorageErrorCode) => watchErrorStatus(new StorageError(code, 'text'), resource);
  for (const code of ['Unavailable', 'Timeout', 'Closed'] as const) {
    const { code: httpCode, reason, message } = statusOf(code);
    t.deepEqual([httpCode, reason], [503, StatusReason.ServiceUnavailable], code);
    t.is(message, 'the watch was interrupted, please watch again');
  }
  for (const code of ['Compacted', 'EpochChanged', 'SlowConsumer'] as const) {
    const { code: httpCode, reason, message } = statusOf(code);
    t.deepEqual([httpCode, reason], [410, StatusReason.Expired], code);
    t.is(message, 'The resourceVersion for the provided watch is too old.');
  }
  t.is(statusOf('Corrupt').code, 500);
  t.is(watchErrorStatus(statusErrors.unauthorized(), resource).code, 401);
});

test('admission runs all mutating steps, then all validating ones, in order, and ends at the first rejection', async (t) => {
  const seen: string[] = [];
  const plugin = (name: string, more: Partial<AdmissionPlugin> = {}): AdmissionPlugin => ({
    name,
    mutate: () => void seen.push(`mutate ${name}`),
    validate: async () => {
      await Promise.resolve();
      seen.push(`validate ${name}`);
    },
    ...more,
  });
  const chain = new AdmissionChain([
    plugin('a'),
    plugin('skipped', { handles: () => false }),
    plugin('of another kind', { resources: [Place.names.plural] }),
    plugin('b', { mutate: async () => void seen.push('mutate b') }),
    plugin('c', {
      validate: () => {
        throw statusErrors.badRequest('no');
      },
    }),
    plugin('d'),
  ]);
  const request = { operation: 'create', kind: Widget, context: internalContext() } as AdmissionRequest;
  await chain.mutate(request);
  await t.throwsAsync(async () => chain.validate(request), { message: 'no' });
  t.deepEqual(seen, ['mutate a', 'mutate b', 'mutate c', 'mutate d', 'validate a', 'validate b']);
  t.is(
    new AdmissionChain([plugin('sync', { validate: () => {} })]).validate(request),
    undefined,
    'nothing to wait for',
  );
});

test('generation increases only with changes of the desired state, by the rule of the kind', (t) => {
  const old: AnyObject = { metadata: { generation: 3, annotations: { a: '1' } }, spec: { x: 1 }, status: { y: 1 } };
  const after = (change: (object: AnyObject) => void, kind = Widget) => {
    const object = copyJson(old);
    change(object);
    raiseGeneration(kind, object, old);
    return object.metadata?.generation;
  };
  t.is(
    after(() => {}),
    3,
  );
  t.is(
    after((o) => Object.assign(o, { status: { y: 2 } })),
    3,
  );
  t.is(
    after((o) => Object.assign(o.metadata ?? {}, { labels: { l: '1' } })),
    3,
  );
  t.is(
    after((o) => Object.assign(o, { spec: { x: 2 } })),
    4,
  );
  t.is(
    after((o) => delete o['spec']),
    4,
  );
  t.is(
    after((o) => Object.assign(o, { other: 1 })),
    4,
  );
  t.is(
    after((o) => Object.assign(o.metadata ?? {}, { annotations: {} })),
    4,
  );
  t.is(
    after((o) => Object.assign(o, { spec: { x: 2 } }), Place as typeof Widget),
    3,
  );
});

function stored(object: Record<string, unknown>): StoredObject {
  return new StoredObject('/k', 1, 1, Buffer.from(JSON.stringify(object)));
}

test('selection: selectors, canonical text and the one key that can match', (t) => {
  const red = stored({ metadata: { name: 'a', namespace: 'n', labels: { app: 'x' } }, spec: { colour: 'red' } });
  const select = (labelSelector: string, fieldSelector: string, namespace: string | undefined = 'n') =>
    selectionOf(Widget, namespace === undefined ? {} : { namespace }, { labelSelector, fieldSelector }).predicate;
  t.true(select('', '').everything);
  t.is(select('app = x', 'spec.colour=red').id, select('app==x', 'spec.colour==red').id);
  t.not(select('app=x', '').id, select('', 'spec.colour=x').id);
  t.true(select('app in (x,y)', 'spec.colour!=blue').matches(red));
  t.false(select('app=x', 'spec.colour=blue').matches(red));
  t.is(select('', 'metadata.name=a').key, '/toys.example.com/widgets/n/a');
  t.is(selectionOf(Widget, {}, { fieldSelector: 'metadata.name=a' }).predicate.key, undefined);
  t.is(
    selectionOf(Widget, {}, { fieldSelector: 'metadata.name=a,metadata.namespace=m' }).predicate.key,
    '/toys.example.com/widgets/m/a',
  );
  t.is(select('', 'metadata.name!=a').key, undefined);
  for (const name of ['../m/a', 'a\0', 'a\0/b']) t.is(select('', `metadata.name=${name}`).key, undefined);
  for (const namespace of ['', 'm/n']) {
    const fieldSelector = `metadata.name=a,metadata.namespace=${namespace}`;
    t.is(selectionOf(Widget, {}, { fieldSelector }).predicate.key, undefined);
  }
  t.is(selectionOf(Place, {}, { fieldSelector: 'metadata.name=a' }).predicate.key, '/core/places/a');
});

test('a selection is pinned to a field or label that must equal a value, which every object it matches has', (t) => {
  const select = (labelSelector: string, fieldSelector: string) =>
    selectionOf(Widget, { namespace: 'n' }, { labelSelector, fieldSelector }).predicate;
  const widget = (labels: object, colour?: string) =>
    StoredObject.fromValue(
      '/toys.example.com/widgets/n/a',
      1,
      1,
      Buffer.from(JSON.stringify({ metadata: { labels }, spec: { colour } })),
    );
  const objects = [widget({ app: 'x' }, 'red'), widget({ app: 'y' }, 'blue'), widget({}), widget({ app: '' }, '')];
  for (const [labels, fields, attribute, value] of [
    ['app=x', 'spec.colour=red', 'field spec.colour', 'red'],
    ['app=x,tier=a', '', 'label app', 'x'],
    ['app in (x)', 'spec.colour!=red', 'label app', 'x'],
    ['app=', '', 'label app', ''],
    ['', 'spec.colour=', 'field spec.colour', ''],
    ['app in (x,y)', 'spec.colour!=red', undefined, undefined],
    ['app,!tier,app!=y', '', undefined, undefined],
  ] as const) {
    const { pin, matches } = select(labels, fields);
    t.deepEqual([pin?.attribute, pin?.value], [attribute, value], `${labels} ${fields}`);
    for (const object of objects) if (pin && matches(object)) t.is(pin.read(object), pin.value);
  }
  t.is(select('', 'metadata.name=a').pin, undefined, 'its key says more');
  t.is(select('constructor=x', '').pin?.read(objects[2] as StoredObject), undefined);
});

test('a selector that follows from the key is evaluated without parsing the object', (t) => {
  const unreadable = (key: string) => new StoredObject(key, 1, 1, undefined);
  for (const fieldSelector of ['metadata.name=a', 'metadata.name=a,metadata.namespace=n']) {
    const { matches } = selectionOf(Widget, { namespace: 'n' }, { fieldSelector }).predicate;
    t.true(matches(unreadable('/toys.example.com/widgets/n/a')));
    t.false(matches(unreadable('/toys.example.com/widgets/n/b')));
  }
  for (const more of [
    { labelSelector: 'app' },
    { fieldSelector: 'metadata.namespace=m' },
    { fieldSelector: 'metadata.name=b' },
  ]) {
    const fieldSelector = `metadata.name=a,${more.fieldSelector ?? ''}`;
    const { matches } = selectionOf(Widget, { namespace: 'n' }, { ...more, fieldSelector }).predicate;
    t.throws(() => matches(unreadable('/toys.example.com/widgets/n/a')));
    t.false(matches(stored({ metadata: { name: 'a', namespace: 'n' } })));
  }
});

test('a selectable field is read under the name that it has in the storage version', (t) => {
  const OldWidget: typeof Widget = {
    ...Widget,
    version: 'v1alpha1',
    selectableFields: new Map([
      ['metadata.namespace', (widget) => widget.metadata?.namespace ?? ''],
      ['paint', (widget) => widget.spec?.colour ?? ''],
    ]),
    storage: {
      kind: Widget,
      toStorage: (widget) => widget,
      fromStorage: (widget) => widget,
      isRelabel: () => true,
      selectableFields: { paint: 'spec.colour' },
    },
  };
  const { predicate } = selectionOf(OldWidget, {}, { fieldSelector: 'metadata.namespace=n,paint!=blue' });
  const painted = (colour: string) => stored({ metadata: { name: 'a', namespace: 'n' }, spec: { colour } });
  t.true(predicate.matches(painted('red')));
  t.false(predicate.matches(painted('blue')));
});

test('selection of one object by name, and selectors that are refused', (t) => {
  const named = selectionOf(Widget, { namespace: 'n', name: 'a' }, { fieldSelector: 'spec.colour=red' }).predicate;
  t.is(named.key, '/toys.example.com/widgets/n/a');
  t.false(named.matches(stored({ metadata: { name: 'a', namespace: 'n' }, spec: { colour: 'blue' } })));
  const message = (run: () => unknown) => {
    const error = t.throws<StatusError>(run as () => StatusError);
    t.is(error.code, 400);
    return error.message;
  };
  t.is(
    message(() => selectionOf(Widget, { namespace: 'n', name: 'a' }, { fieldSelector: 'metadata.name=b' })),
    "fieldSelector metadata.name doesn't match requested name",
  );
  t.is(
    message(() => selectionOf(Widget, {}, { fieldSelector: 'spec.size=1' })),
    'field label not supported: spec.size',
  );
  const names = new Map([...Widget.selectableFields].filter(([path]) => path.startsWith('metadata.')));
  for (const kind of [Place, { ...Widget, selectableFields: names }]) {
    t.is(
      message(() => selectionOf(kind, {}, { fieldSelector: 'spec.size=1' })),
      '"spec.size" is not a known field selector: only "metadata.name", "metadata.namespace"',
    );
  }
  message(() => selectionOf(Widget, {}, { labelSelector: 'a in (' }));
  message(() => selectionOf(Widget, {}, { labelSelector: 'a,'.repeat(200_000) }));
  message(() => selectionOf(Widget, {}, { fieldSelector: 'x' }));
});
