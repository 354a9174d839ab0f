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
  const heard: string[] = [];
  const write = ({ op, pod: changed }: PodChange) => `${op} ${changed.metadata?.uid}`;
  config.subscribe((source, changes) => heard.push(`${source}: ${changes.map(write).join(', ')}`));
  return { config, clock, heard };
}

test('each set is compared with the one before of its own source', (t) => {
  const { config, heard } = open('file', 'api');
  const [file, api] = [config.sink('file'), config.sink('api')];
  file([pod('a'), pod('b')]);
  api([pod('c')]);
  file([pod('b', { image: 'other' }), pod('d')]);
  t.deepEqual(heard, ['file: add a, add b', 'api: add c', 'file: remove a, update b, add d']);
  t.deepEqual(
    config.pods().map(({ metadata }) => metadata?.uid),
    ['b', 'd', 'c'],
  );
});

test('a status that somebody else wrote is told apart from a wish, and bookkeeping is neither', (t) => {
  const { config, heard } = open('api');
  const api = config.sink('api');
  api([pod('a')]);
  api([pod('a', { resourceVersion: '2' })]);
  api([pod('a', { resourceVersion: '3' }, { phase: 'Failed' })]);
  api([pod('a', { resourceVersion: '4', deletionTimestamp: '2026-01-01T00:00:00Z' } as object, { phase: 'Failed' })]);
  t.deepEqual(heard, ['api: add a', 'api: reconcile a', 'api: update a']);
  t.is(config.pods()[0]?.metadata?.resourceVersion, '4');
  api([pod('a', { resourceVersion: '5', deletionTimestamp: '2026-01-01T00:00:00Z' } as object, { phase: 'Failed' })]);
  t.is(config.pods()[0]?.metadata?.resourceVersion, '5', 'the newest is kept though it says nothing new');
});

test('an empty first set is told, an empty later one is not', (t) => {
  const { config, heard } = open('file');
  const file = config.sink('file');
  file([]);
  file([]);
  t.deepEqual(heard, ['file: ']);
});

test('all sources are seen when each has delivered once, and not before', (t) => {
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

test('restored pods run, do not count as seen, and give way to what the source says', (t) => {
  const { config, heard } = open('api');
  config.restore('api', [pod('a'), pod('b')]);
  t.false(config.seenAllSources());
  config.sink('api')([pod('b')]);
  config.restore('api', [pod('z')]);
  t.deepEqual(heard, ['api: add a, add b', 'api: remove a']);
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

test('changes since a set was delivered are told like sets: what goes first, then what is new or different, and nothing for the rest', (t) => {
  const { config, heard } = open('api');
  const changes = config.changesSink('api');
  config.sink('api')([pod('a'), pod('b'), pod('c')]);
  changes([pod('b', { image: 'other' }), pod('d'), pod('c', { resourceVersion: '2' })], ['a', 'never-known']);
  changes([pod('c', { resourceVersion: '3' })], []);
  changes([pod('c', { resourceVersion: '4' }, { phase: 'Failed' })], []);
  t.deepEqual(heard, ['api: add a, add b, add c', 'api: remove a, update b, add d', 'api: reconcile c']);
  t.deepEqual(
    config.pods().map(({ metadata }) => `${metadata?.uid} ${metadata?.resourceVersion}`),
    ['b 1', 'c 4', 'd 1'],
  );
});

test('annotations, labels and fields that appear or go are wishes, as far as the agent did not add them itself', (t) => {
  const { config, heard } = open('api');
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
  t.is(heard.slice(1).join(), Array(4).fill('api: update a').join());
});

test('a label with the name of a member of every JavaScript object is a change of the pod', (t) => {
  const { config, heard } = open('api');
  const api = config.sink('api');
  api([pod('a', { labels: {} } as object)]);
  api([pod('a', { labels: { constructor: 'x' } } as object)]);
  api([pod('a', { labels: {} } as object)]);
  t.deepEqual(heard, ['api: add a', 'api: update a', 'api: update a']);
});

test('a listener that fails or leaves does not keep others from hearing', (t) => {
  const config = new PodConfig({ sources: ['file'], clock: new FakeClock(), logger: silentLogger });
  const heard: number[] = [];
  config.subscribe(() => {
    throw new Error('broken');
  });
  const leave = config.subscribe(() => heard.push(1));
  config.subscribe(() => heard.push(2));
  config.sink('file')([]);
  leave();
  config.sink('file')([pod('a')]);
  t.deepEqual(heard, [1, 2, 2]);
  t.throws(() => config.sink('api')([]), { message: /is not configured/ });
});
