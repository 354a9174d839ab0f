import { FakeClock, silentLogger } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import test from 'ava';
import type { PodChange, PodSourceName } from '../../src/base/contracts/pod-source.ts';
import { PodConfig } from '../../src/sources/pod-config.ts';

const pod = (
  uid: string,
  { image = 'host', resourceVersion = '1', ...rest } = {},
  status: Pod['status'] = {},
): Pod => ({
  metadata: { name: uid, namespace: 'default', uid, resourceVersion, ...rest },
  spec: { containers: [{ name: 'c', image }] } as Pod['spec'],
  status,
});

function open(...sources: PodSourceName[]) {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const config = new PodConfig({ sources, clock, logger: silentLogger });
  const notified: string[] = [];
  const write = ({ op, pod: changed }: PodChange) => `${op} ${changed.metadata?.uid}`;
  config.subscribe((source, changes) => notified.push(`${source}: ${changes.map(write).join(', ')}`));
  return { config, clock, notified };
}

test('each set of pods is compared with the previous one of its own source', (t) => {
  const { config, notified } = open('file', 'api');
  const [file, api] = [config.sink('file'), config.sink('api')];
  file([pod('a'), pod('b')]);
  api([pod('c')]);
  file([pod('b', { image: 'other' }), pod('d')]);
  t.deepEqual(notified, ['file: add a, add b', 'api: add c', 'file: remove a, update b, add d']);
  t.deepEqual(
    config.pods().map(({ metadata }) => metadata?.uid),
    ['b', 'd', 'c'],
  );
});

test('a status change by another writer is distinguished from a spec change, and bookkeeping is neither', (t) => {
  const { config, notified } = open('api');
  const api = config.sink('api');
  api([pod('a')]);
  api([pod('a', { resourceVersion: '2' })]);
  api([pod('a', { resourceVersion: '3' }, { phase: 'Failed' })]);
  api([pod('a', { resourceVersion: '4', deletionTimestamp: '2026-01-01T00:00:00Z' } as object, { phase: 'Failed' })]);
  t.deepEqual(notified, ['api: add a', 'api: reconcile a', 'api: update a']);
  t.is(config.pods()[0]?.metadata?.resourceVersion, '4');
  api([pod('a', { resourceVersion: '5', deletionTimestamp: '2026-01-01T00:00:00Z' } as object, { phase: 'Failed' })]);
  t.is(config.pods()[0]?.metadata?.resourceVersion, '5', 'the newest is kept though it says nothing new');
});

test('an empty first set notifies listeners, an empty later one does not', (t) => {
  const { config, notified } = open('file');
  const file = config.sink('file');
  file([]);
  file([]);
  t.deepEqual(notified, ['file: ']);
});

test('all sources are ready when each has delivered a set, and not before', (t) => {
  const { config } = open('file', 'http', 'api');
  t.false(config.seenAllSources());
  config.sink('file')([]);
  config.sink('http')([]);
  t.false(config.seenAllSources());
  config.sink('api')([]);
  t.true(config.seenAllSources());
  t.true(
    new PodConfig({ sources: [], clock: new FakeClock(), logger: silentLogger }).seenAllSources(),
    'none to wait for',
  );
});

test('restored pods run, do not make their source ready, and are replaced by the pods of the source', (t) => {
  const { config, notified } = open('api');
  config.restore('api', [pod('a'), pod('b')]);
  t.false(config.seenAllSources());
  config.sink('api')([pod('b')]);
  config.restore('api', [pod('z')]);
  t.deepEqual(notified, ['api: add a, add b', 'api: remove a']);
  t.true(config.seenAllSources());
});

test('a pod keeps the time at which it was first seen', (t) => {
  const { config, clock } = open('api');
  const api = config.sink('api');
  const seen = () => config.pods()[0]?.metadata?.annotations?.['kubernetes.io/config.seen'];
  api([pod('a')]);
  t.is(seen(), '2026-01-01T00:00:00.000Z');
  clock.advance(5000);
  api([pod('a', { image: 'other' })]);
  t.is(seen(), '2026-01-01T00:00:00.000Z');
});

test('incremental changes notify like sets: removed pods first, then new and changed ones', (t) => {
  const { config, notified } = open('api');
  const changes = config.changesSink('api');
  config.sink('api')([pod('a'), pod('b'), pod('c')]);
  changes([pod('b', { image: 'other' }), pod('d'), pod('c', { resourceVersion: '2' })], ['a', 'never-known']);
  changes([pod('c', { resourceVersion: '3' })], []);
  changes([pod('c', { resourceVersion: '4' }, { phase: 'Failed' })], []);
  t.deepEqual(notified, ['api: add a, add b, add c', 'api: remove a, update b, add d', 'api: reconcile c']);
  t.deepEqual(
    config.pods().map(({ metadata }) => `${metadata?.uid} ${metadata?.resourceVersion}`),
    ['b 1', 'c 4', 'd 1'],
  );
});

test('changed annotations, labels and fields are updates, except those that the agent added itself', (t) => {
  const { config, notified } = open('api');
  const changes = config.changesSink('api');
  const is = (metadata: object) => changes([pod('a', metadata as never)], []);
  config.sink('api')([pod('a')]);
  is({ annotations: {} });
  is({ annotations: { note: '1' } });
  is({ annotations: { note: '1', 'kubernetes.io/config.seen': 'later' } });
  is({ annotations: { note: '2' } });
  is({ labels: { app: 'web' } });
  is({});
  is({ managedFields: [{ manager: 'x' }], generation: 3 });
  t.is(notified.slice(1).join(), Array(4).fill('api: update a').join());
});

test('a label whose name is a property of Object.prototype is a change of the pod', (t) => {
  const { config, notified } = open('api');
  const api = config.sink('api');
  api([pod('a', { labels: {} } as object)]);
  api([pod('a', { labels: { constructor: 'x' } } as object)]);
  api([pod('a', { labels: {} } as object)]);
  t.deepEqual(notified, ['api: add a', 'api: update a', 'api: update a']);
});

test('a listener that throws or unsubscribes does not affect other listeners', (t) => {
  const config = new PodConfig({ sources: ['file'], clock: new FakeClock(), logger: silentLogger });
  const notified: number[] = [];
  config.subscribe(() => {
    throw new Error('broken');
  });
  const leave = config.subscribe(() => notified.push(1));
  config.subscribe(() => notified.push(2));
  config.sink('file')([]);
  leave();
  config.sink('file')([pod('a')]);
  t.deepEqual(notified, [1, 2, 2]);
  t.throws(() => config.sink('api')([]), { message: /is not configured/ });
});
