import type { KubeObject, Stored } from '@keelson/core';
import { FakeClock, silentLogger } from '@keelson/core/runtime';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { ConnectionError } from '../../src/http/connection-error.ts';
import { Informer, type InformerOptions, keyOf } from '../../src/informer.ts';
import { byLabel, byNamespace, byOwnerUid, createLister } from '../../src/lister.ts';
import { failure, ScriptedClient, thing } from './scripted-client.ts';

interface Running {
  readonly script: ScriptedClient;
  readonly clock: FakeClock;
  readonly informer: Informer<KubeObject>;
  /** The calls of the handlers, as text. */
  readonly notified: string[];
  /** Moves the clock until the condition holds: the informer waits between failures. */
  passing(condition: () => boolean): Promise<unknown>;
}

const versionOf = (object: KubeObject) => `${keyOf(object)}@${object.metadata?.resourceVersion}`;

function informer(
  t: ExecutionContext,
  script: ScriptedClient,
  options: Partial<InformerOptions<KubeObject, KubeObject>> = {},
): Running {
  const clock = new FakeClock();
  const notified: string[] = [];
  const made = new Informer<KubeObject>({
    client: script.client,
    keep: (object) => object,
    clock,
    logger: silentLogger,
    handlers: {
      added: (object) => notified.push(`+${versionOf(object)}`),
      updated: (object, before) => notified.push(`~${versionOf(before)}>${versionOf(object)}`),
      deleted: (object) => notified.push(`-${versionOf(object)}`),
    },
    ...options,
  });
  t.teardown(() => made.stop());
  const passing = (condition: () => boolean) =>
    until(() => {
      clock.advance(500);
      return condition();
    });
  return { script, clock, informer: made, notified, passing };
}

test('an informer lists in pages, then watches from the resourceVersion of the list', async (t) => {
  const script = new ScriptedClient();
  script.answers = [script.list(10, [thing('a', 3), thing('b', 4)], 'next'), script.list(10, [thing('c', 5)])];
  const { informer: running, notified } = informer(t, script, { pageSize: 2, labelSelector: 'x=y' });
  t.false(running.synced);
  await running.start();
  t.true(running.synced);
  t.deepEqual(script.lists, [
    { labelSelector: 'x=y', limit: 2 },
    { labelSelector: 'x=y', limit: 2, continue: 'next' },
  ]);
  const watch = await script.watch(0);
  const { timeoutSeconds = 0, signal: _signal, ...asked } = watch.options;
  t.deepEqual(asked, { labelSelector: 'x=y', resourceVersion: '10', allowWatchBookmarks: true });
  t.true(timeoutSeconds >= 300 && timeoutSeconds <= 600);
  watch.send(
    { type: 'ADDED', object: thing('d', 11) },
    { type: 'MODIFIED', object: thing('a', 12) },
    { type: 'DELETED', object: thing('b', 13) },
    { type: 'BOOKMARK', object: { metadata: { resourceVersion: '20' } } },
  );
  await until(() => running.resourceVersion === '20');
  t.deepEqual(notified, ['+n/a@3', '+n/b@4', '+n/c@5', '+n/d@11', '~n/a@3>n/a@12', '-n/b@13']);
  t.deepEqual([...running.values()].map(keyOf).sort(), ['n/a', 'n/c', 'n/d']);
  t.is(running.get('n/a')?.metadata?.resourceVersion, '12');
});

test('a watch that ends is resumed from the last resourceVersion, without a list', async (t) => {
  const script = new ScriptedClient();
  const probe = script.list(99, []);
  script.answers = [script.list(10, []), probe, probe, probe];
  const { informer: running, passing } = informer(t, script, { firstListFromCache: true });
  await running.start();
  t.deepEqual(script.lists, [{ limit: 500, resourceVersion: '0' }]);
  const first = await script.watch(0);
  first.send({ type: 'ADDED', object: thing('a', 11) });
  first.end();
  const second = await script.watch(1);
  t.is(second.options.resourceVersion, '11');
  second.send({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '15' } } });
  second.fail(new ConnectionError('Interrupted', 'cut'));
  await passing(() => script.watches.length > 2);
  t.is(script.watches[2]?.options.resourceVersion, '15');
  script.watches[2]?.fail(failure(503, 'ServiceUnavailable'));
  await passing(() => script.watches.length > 3);
  script.watches[3]?.fail(failure(429, 'TooManyRequests'));
  await passing(() => script.watches.length > 4);
  t.is(script.watches[4]?.options.resourceVersion, '15');
  const question = { limit: 1, resourceVersion: '15', resourceVersionMatch: 'NotOlderThan' as const };
  t.deepEqual(script.lists.slice(1), [question, question, question], 'each time only whether the server is as far');
});

test('a server that is behind the observed revision, or sends older events, is listed again', async (t) => {
  const script = new ScriptedClient();
  script.answers = [
    script.list(100, [thing('a', 3)]),
    failure(504, 'Timeout', 'ResourceVersionTooLarge'),
    script.list(5, [thing('b', 4)]),
    script.list(6, [thing('c', 5)]),
  ];
  const { informer: running, notified, passing } = informer(t, script);
  await running.start();
  (await script.watch(0)).fail(new ConnectionError('Interrupted', 'cut'));
  await passing(() => script.watches.length > 1);
  t.deepEqual(notified, ['+n/a@3', '+n/b@4', '-n/a@3']);
  t.is(script.watches[1]?.options.resourceVersion, '5');
  script.watches[1]?.send({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '4' } } });
  await passing(() => script.watches.length > 2);
  t.deepEqual(notified.slice(3), ['+n/c@5', '-n/b@4']);
});

test('watches that end immediately without events are retried with a back-off', async (t) => {
  const script = new ScriptedClient();
  script.answers = [script.list(10, [])];
  const { informer: running, passing } = informer(t, script);
  await running.start();
  (await script.watch(0)).end();
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  t.is(script.watches.length, 1);
  await passing(() => script.watches.length === 2);
});

test('after 410 it lists a revision that is not older, in one request, and handlers receive only the difference', async (t) => {
  const script = new ScriptedClient();
  script.answers = [
    script.list(10, [thing('same', 3), thing('changes', 4), thing('goes', 5), thing('again', 6)]),
    script.list(30, [thing('same', 3), thing('changes', 22), thing('again', 25, 'other'), thing('new', 26)]),
  ];
  const { informer: running, notified, passing } = informer(t, script);
  await running.start();
  notified.length = 0;
  const watch = await script.watch(0);
  watch.send({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '12' } } });
  watch.fail(failure(410, 'Expired'));
  await passing(() => script.watches.length > 1);
  t.deepEqual(script.lists[1], { resourceVersion: '12' });
  t.deepEqual(notified, ['~n/changes@4>n/changes@22', '~n/again@6>n/again@25', '+n/new@26', '-n/goes@5']);
  t.is(script.watches[1]?.options.resourceVersion, '30');
});

test('a relist at a version that is expired or ahead of the server is repeated at the latest version', async (t) => {
  for (const refusal of [failure(410, 'Expired'), failure(504, 'Timeout', 'ResourceVersionTooLarge')]) {
    const script = new ScriptedClient();
    script.answers = [script.list(10, [thing('a', 3)]), refusal, script.list(2, [])];
    const { informer: running, notified, passing } = informer(t, script);
    await running.start();
    (await script.watch(0)).fail(failure(410, 'Gone'));
    await passing(() => script.lists.length > 1);
    await script.watch(1);
    t.deepEqual(script.lists.slice(1), [{ resourceVersion: '10' }, { limit: 500 }]);
    t.deepEqual(notified, ['+n/a@3', '-n/a@3']);
    t.is(script.watches[1]?.options.resourceVersion, '2');
  }
});

test('a watch ahead of the server causes a list of the latest state; after other errors the list is not older', async (t) => {
  const script = new ScriptedClient();
  script.answers = [
    script.list(10, []),
    script.list(4, []),
    script.list(5, []),
    failure(403, 'Forbidden'),
    script.list(6, []),
  ];
  const { informer: running, passing } = informer(t, script);
  await running.start();
  (await script.watch(0)).fail(failure(504, 'Timeout', 'ResourceVersionTooLarge'));
  await passing(() => script.watches.length > 1);
  script.watches[1]?.fail(failure(400, 'BadRequest'));
  await passing(() => script.watches.length > 2);
  script.watches[2]?.fail(failure(404, 'NotFound'));
  await passing(() => script.watches.length > 3);
  t.deepEqual(script.lists, [
    { limit: 500 },
    { limit: 500 },
    { resourceVersion: '4' },
    { resourceVersion: '5' },
    { resourceVersion: '5' },
  ]);
});

test('an expired continue token causes one complete list, and objects deleted in the meantime are removed', async (t) => {
  const script = new ScriptedClient();
  script.answers = [
    script.list(10, [thing('a', 1), thing('b', 2)], 'next'),
    failure(410, 'Expired'),
    script.list(20, [thing('b', 2), thing('c', 15)]),
  ];
  const { informer: running, notified } = informer(t, script);
  await running.start();
  t.deepEqual(script.lists.slice(1), [{ limit: 500, continue: 'next' }, {}]);
  t.deepEqual(notified, ['+n/a@1', '+n/b@2', '+n/c@15', '-n/a@1']);
});

test('a failed first list is retried with a growing back-off; waiting for it can be aborted', async (t) => {
  const script = new ScriptedClient();
  script.answers = [failure(503, 'ServiceUnavailable'), new Error('odd'), script.list(1, [])];
  const { informer: running, passing } = informer(t, script);
  const started = running.start();
  t.false(await running.waitForSync(AbortSignal.abort()));
  const controller = new AbortController();
  const waiting = running.waitForSync(controller.signal);
  controller.abort();
  t.false(await waiting);
  await passing(() => script.lists.length === 3);
  await started;
  t.true(await running.waitForSync());
  t.true(await running.waitForSync(new AbortController().signal));
});

test('after a stop during a list or a watch, no handler is called', async (t) => {
  const script = new ScriptedClient();
  let answer: (list: ReturnType<ScriptedClient['list']>) => void = () => {};
  script.answers = [
    () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
  ];
  const { informer: running, notified } = informer(t, script);
  const started = running.start();
  const stopped = running.stop();
  answer(script.list(1, [thing('a', 1)]));
  await Promise.all([started, stopped]);
  t.false(await running.waitForSync());
  t.deepEqual(notified, []);
  t.is(script.watches.length, 0);
});

test('handlers: those added later receive all cached objects, removed ones receive nothing more, and one that throws does not affect others', async (t) => {
  const script = new ScriptedClient();
  script.answers = [script.list(10, [thing('a', 3)])];
  const { informer: running, notified } = informer(t, script);
  running.addHandlers({
    added: () => {
      throw new Error('bad handler');
    },
  });
  await running.start();
  const late: string[] = [];
  const remove = running.addHandlers({
    added: (_object, key) => late.push(`+${key}`),
    deleted: (_object, key) => late.push(`-${key}`),
  });
  const watch = await script.watch(0);
  watch.send({ type: 'ADDED', object: thing('b', 11) }, { type: 'DELETED', object: thing('a', 12) });
  await until(() => running.resourceVersion === '12');
  remove();
  watch.send({ type: 'ADDED', object: thing('c', 13) });
  await until(() => running.resourceVersion === '13');
  t.deepEqual(late, ['+n/a', '+n/b', '-n/a']);
  t.deepEqual(notified, ['+n/a@3', '+n/b@11', '-n/a@12', '+n/c@13']);
});

test('objects that are not remembered are not cached: handlers are called when one is deleted or is no longer remembered, and after a relist', async (t) => {
  const script = new ScriptedClient();
  script.answers = [script.list(10, [thing('plain-a', 3), thing('kept-b', 4)]), script.list(30, [thing('kept-b', 4)])];
  const notified: string[] = [];
  const { informer: running, passing } = informer(t, script, {
    remember: (object) =>
      object.metadata?.name?.startsWith('kept') === true || object.metadata?.finalizers !== undefined,
    handlers: {
      added: (object) => notified.push(`+${versionOf(object)}`),
      updated: (object, before) => notified.push(`~${versionOf(before)}>${versionOf(object)}`),
      deleted: (object) => notified.push(`-${versionOf(object)}`),
      relisted: () => notified.push('relisted'),
    },
  });
  await running.start();
  t.is(running.size, 1);
  const held = thing('plain-c', 12);
  const watch = await script.watch(0);
  watch.send(
    { type: 'ADDED', object: thing('plain-c', 11) },
    { type: 'MODIFIED', object: { metadata: { ...held.metadata, finalizers: ['x'] } } },
    { type: 'MODIFIED', object: thing('plain-c', 13) },
    { type: 'DELETED', object: thing('plain-a', 14) },
  );
  await until(() => running.resourceVersion === '14');
  t.deepEqual(notified, ['+n/kept-b@4', '+n/plain-c@12', '~n/plain-c@12>n/plain-c@13', '-n/plain-a@14']);
  t.is(running.size, 1);
  watch.fail(failure(410, 'Expired'));
  await passing(() => notified.at(-1) === 'relisted');
  t.is(notified.length, 5);
});

test('a lister reads by its indexes, which are up to date when handlers are called', async (t) => {
  const script = new ScriptedClient();
  const owned = (name: string, version: number, owner: string, app: string): Stored => ({
    metadata: {
      ...thing(name, version).metadata,
      labels: { app },
      ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: owner }],
    },
  });
  script.answers = [script.list(10, [owned('a', 1, 'o1', 'web'), owned('b', 2, 'o1', 'db')])];
  const { informer: running } = informer(t, script);
  const seen: string[] = [];
  running.addHandlers({
    added: (_object, key) => seen.push(`${key}: ${lister.keysBy('owner', 'o1')}`),
    updated: (_object, _before, key) => seen.push(`${key}: ${lister.keysBy('owner', 'o1')}`),
    deleted: (_object, key) => seen.push(`${key}: ${lister.keysBy('owner', 'o1')}`),
  });
  const lister = createLister(running, { indexes: { namespace: byNamespace, owner: byOwnerUid, app: byLabel('app') } });
  await running.start();
  const watch = await script.watch(0);
  watch.send(
    { type: 'MODIFIED', object: owned('a', 11, 'o2', 'db') },
    { type: 'DELETED', object: owned('b', 12, 'o1', 'db') },
    { type: 'ADDED', object: thing('c', 13) },
  );
  await until(() => running.resourceVersion === '13');
  t.deepEqual(seen, ['n/a: n/a', 'n/b: n/a,n/b', 'n/a: n/b', 'n/b: ', 'n/c: ']);
  t.deepEqual(lister.by('app', 'db').map(versionOf), ['n/a@11']);
  t.deepEqual([lister.valuesOf('owner'), lister.valuesOf('app')], [['o2'], ['db']]);
  t.deepEqual(lister.keysBy('namespace', 'n').sort(), ['n/a', 'n/c']);
  t.is(lister.list().length, 2);
  t.is(lister.get('n/c')?.metadata?.name, 'c');
  t.throws(() => lister.keysBy('colour' as never, 'x'), { message: /no index "colour"/ });
});
