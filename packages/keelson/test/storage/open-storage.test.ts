import { UsageError } from '@keelson/core/internal';
import { type Metrics, noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import type { Store } from '@keelson/core/storage-adapter';
import test from 'ava';
import { labelledMetrics } from '../../src/observe/labelled-metrics.ts';
import { createPromMetrics } from '../../src/observe/prom-metrics.ts';
import { makeStore } from '../../src/storage/open-storage.ts';
import { planStorage } from '../../src/storage/storage-plan.ts';

const context = { clock: systemClock, logger: silentLogger, metrics: noMetrics as Metrics };

const make = async (
  choice: Parameters<typeof planStorage>[0],
  history?: { minChanges?: number; minAgeMs?: number },
) => {
  const [plan] = planStorage(choice, { reads: 'consistent', history }, '--storage').stores;
  if (plan === undefined) throw new Error('no store');
  return makeStore(plan, context);
};

/** How many changes a store keeps when their age does not matter. */
async function kept(store: Store): Promise<number> {
  await store.ready();
  for (let i = 0; i < 50; i += 1) await store.write({ op: 'put', key: `/${i}`, value: Buffer.from('x'), expect: 0 });
  const count = (await store.currentRevision()) - (await store.compactedRevision());
  await store.close();
  return count;
}

test('the history window of all stores reaches the adapter, that of a store wins', async (t) => {
  t.is(await kept((await make('memory:', { minChanges: 10, minAgeMs: 0 })).store), 10);
  const own = { url: 'memory:', history: { minChanges: 20 } };
  t.true((await kept((await make(own, { minChanges: 10, minAgeMs: 0 })).store)) > 20);
  t.is(await kept((await make({ url: 'memory:', history: { minChanges: 20, minAge: '0s' } })).store), 20);
});

const refused: readonly (readonly [title: string, choice: Parameters<typeof make>[0], message: RegExp])[] = [
  ['an unknown scheme', 'mysql://x', /--storage "mysql:\/\/x" must begin with one of memory: lmdb: /],
  ['a package that is not there', { adapter: '@team/none' }, /the storage adapter @team\/none is not installed/],
  [
    'a module that is no adapter',
    { adapter: '@keelson/core' },
    /@keelson\/core does not export a storage adapter by default/,
  ],
  ['an unknown option', { adapter: 'lmdb', path: 'x', size: 1 }, /lmdb has no option size/],
  ['a missing option', { adapter: 'lmdb' }, /path: Required value/],
  ['an option of another type', { adapter: 'lmdb', path: 5 }, /path must be string/],
  ['a URL that the adapter does not understand', 'lmdb:', /lmdb: needs the path of a directory/],
  [
    'options that do not fit each other',
    { adapter: 'etcd', hosts: ['127.0.0.1:1'], username: 'x' },
    /--storage: .*username and password belong together/,
  ],
];

for (const [title, choice, message] of refused) {
  test(`refused: ${title}`, async (t) => {
    t.regex((await t.throwsAsync(make(choice), { instanceOf: UsageError }))?.message ?? '', message);
  });
}

test('both URL schemes of etcd select the same adapter, which receives the scheme', async (t) => {
  for (const url of ['etcd://127.0.0.1:1/x', 'etcds://127.0.0.1:1/x']) t.is((await make(url)).adapter, 'etcd');
  await t.throwsAsync(make('etcd://127.0.0.1:1/x?ca=/x.pem'), { instanceOf: UsageError });
});

test('two stores that use one metric are distinguished by their label', async (t) => {
  const metrics = createPromMetrics();
  for (const storage of ['a', 'b']) {
    const own = labelledMetrics(metrics, { storage });
    own.counter({ name: 'x_total', help: 'x', labels: ['store'] }).add(storage === 'a' ? 1 : 2, { store: 's' });
    own.gauge({ name: 'y', help: 'y' }).set(7);
    own.histogram({ name: 'z', help: 'z' }).observe(1);
  }
  const text = await metrics.text();
  t.true(text.includes('x_total{store="s",storage="a"} 1') && text.includes('x_total{store="s",storage="b"} 2'), text);
  t.true(text.includes('y{storage="a"} 7'));
});
