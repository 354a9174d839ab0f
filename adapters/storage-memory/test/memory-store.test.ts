import { ClockToken, FakeClock } from '@keelson/core/runtime';
import { StoreToken } from '@keelson/core/storage-adapter';
import test from 'ava';
import memory, { MemoryStore } from '../src/index.ts';

const value = Buffer.from('x');

test('the adapter takes a bare URL and binds the store once', (t) => {
  t.is(memory.name, 'memory');
  t.deepEqual(memory.parseUrl(''), {});
  t.throws(() => memory.parseUrl('/some/path'), { message: /accepts nothing after the colon/ });
  const bound: { target: unknown; dependencies: unknown; store: unknown }[] = [];
  memory.module({ history: { minChanges: 10 } })((target, dependencies, factory) => {
    bound.push({ target, dependencies, store: factory(...([new FakeClock()] as never)) });
  });
  t.is(bound.length, 1);
  t.is(bound[0]?.target, StoreToken);
  t.deepEqual(bound[0]?.dependencies, [ClockToken]);
  t.true(bound[0]?.store instanceof MemoryStore);
});

test('history beyond the window is removed in small steps while writes continue', async (t) => {
  const clock = new FakeClock();
  const store = new MemoryStore({ clock, history: { minChanges: 100, minAgeMs: 1000 } });
  for (let i = 0; i < 500; i++) await store.write({ op: 'put', key: `/a/${i}`, value, expect: 0 });
  t.is(await store.compactedRevision(), 0, 'young');
  clock.advance(1001);
  t.is(await store.compactedRevision(), 401, 'old, and the timer has run');
  for (let i = 0; i < 300; i++) {
    await store.write({ op: 'put', key: `/b/${i}`, value, expect: 0 });
    clock.advance(100);
  }
  const bound = await store.compactedRevision();
  t.true(bound >= 690 && bound <= 701, String(bound));
  await store.close();
});

test('deleted keys use no memory once their history is removed', async (t) => {
  const store = new MemoryStore({ history: { minChanges: 0, minAgeMs: 0 } });
  for (let round = 0; round < 50; round++) {
    for (let i = 0; i < 100; i++) {
      const result = await store.write({ op: 'put', key: `/a/${i}`, value, expect: 0 });
      if (result.ok) await store.write({ op: 'delete', key: `/a/${i}`, expect: result.revision });
    }
  }
  t.deepEqual(await store.count({ start: '/', end: '0' }), { count: 0, exact: true, revision: 10_001 });
  t.true((await store.compactedRevision()) > 9990);
});

test('a write costs about the same in a store of two hundred thousand keys as in an empty one', async (t) => {
  const timed = async (from: number, count: number) => {
    const begin = process.hrtime.bigint();
    for (let i = from; i < from + count; i++)
      await store.write({ op: 'put', key: `/a/${(i * 7919) % 1_000_003}`, value, expect: 0 });
    return Number(process.hrtime.bigint() - begin) / count;
  };
  const store = new MemoryStore();
  await timed(0, 10_000);
  const small = await timed(10_000, 10_000);
  await timed(20_000, 180_000);
  const large = await timed(200_000, 10_000);
  t.true(large < small * 20 + 5000, `${small} ns, then ${large} ns`);
  await store.close();
});

test('values are shared: a read returns the buffer that was written', async (t) => {
  const store = new MemoryStore();
  t.true(store.capabilities.sharedValues);
  const value = Buffer.from('v');
  await store.write({ op: 'put', key: '/k', value, expect: 0 });
  t.is((await store.get('/k')).entry?.value, value);
  for await (const { entries } of store.list({ start: '/', end: '0' })) t.is(entries[0]?.value, value);
  await store.close();
});
