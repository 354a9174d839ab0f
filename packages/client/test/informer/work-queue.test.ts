import { FakeClock, silentLogger } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import { WorkQueue, type WorkQueueOptions } from '../../src/work-queue.ts';

const turn = async () => {
  for (let at = 0; at < 5; at += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** A queue whose work ends when the test ends it. */
function queue(t: ExecutionContext, options: Partial<WorkQueueOptions> = {}) {
  const clock = new FakeClock();
  const running: {
    readonly key: string;
    readonly signal: AbortSignal;
    done(): void;
    fail(): void;
    again(ms: number): void;
  }[] = [];
  const made = new WorkQueue({
    name: 'test',
    clock,
    logger: silentLogger,
    work: (key, signal) =>
      new Promise((resolve, reject) => {
        const entry = {
          key,
          signal,
          done: () => resolve(undefined),
          fail: () => reject(new Error('bad')),
          again: (againAfterMs: number) => resolve({ againAfterMs }),
        };
        running.push(entry);
      }),
    ...options,
  });
  t.teardown(async () => {
    for (const { done } of running) done();
    await made.stop();
  });
  return { clock, running, queue: made, keys: () => running.map(({ key }) => key) };
}

test('a key is processed by one worker at a time; a key that is added during processing is processed once more', async (t) => {
  const { queue: keys, running, keys: worked } = queue(t, { workers: 3 });
  for (const key of ['a', 'b', 'a', 'a']) keys.add(key);
  t.deepEqual(worked(), ['a', 'b']);
  keys.add('a');
  keys.add('a');
  t.is(keys.size, 2);
  running[0]?.done();
  await turn();
  t.deepEqual(worked(), ['a', 'b', 'a']);
  running[2]?.done();
  running[1]?.done();
  await turn();
  t.deepEqual([worked().length, keys.size], [3, 0]);
});

test('no more keys are processed at once than there are workers', async (t) => {
  const { queue: keys, running, keys: worked } = queue(t, { workers: 2 });
  for (const key of ['a', 'b', 'c', 'd']) keys.add(key);
  t.deepEqual(worked(), ['a', 'b']);
  running[1]?.done();
  await turn();
  t.deepEqual(worked(), ['a', 'b', 'c']);
});

test('the delay doubles with each failure up to a maximum, and a success resets it', async (t) => {
  const { queue: keys, running, clock } = queue(t, { firstRetryMs: 100, maxRetryMs: 350 });
  keys.add('a');
  for (const [at, ms] of [100, 200, 350, 350].entries()) {
    running[at]?.fail();
    await turn();
    clock.advance(ms - 1);
    t.is(running.length, at + 1);
    clock.advance(1);
    t.is(running.length, at + 2);
  }
  running[4]?.done();
  await turn();
  keys.add('a');
  running[5]?.fail();
  await turn();
  clock.advance(100);
  t.is(running.length, 7);
});

test('work can be scheduled again with a delay, and adding the key earlier takes precedence', async (t) => {
  const { queue: keys, running, clock } = queue(t);
  keys.add('a');
  running[0]?.again(1_000);
  await turn();
  clock.advance(999);
  t.is(running.length, 1);
  keys.add('a');
  t.is(running.length, 2);
  running[1]?.done();
  await turn();
  clock.advance(5_000);
  t.is(running.length, 2, 'the later time is void');
  keys.addAfter('b', 50);
  keys.addAfter('b', 5);
  clock.advance(5);
  t.is(running.length, 2, 'the first pause holds');
  clock.advance(45);
  t.is(running.length, 3);
});

test('stopping aborts running work, waits for it, and starts no more', async (t) => {
  const { queue: keys, running, clock } = queue(t);
  keys.add('a');
  keys.add('b');
  keys.addAfter('c', 10);
  let stopped = false;
  const stopping = keys.stop().then(() => {
    stopped = true;
  });
  t.true(running[0]?.signal.aborted);
  await turn();
  t.false(stopped);
  running[0]?.fail();
  await stopping;
  clock.advance(60_000);
  keys.add('d');
  t.is(running.length, 1);
});

test('retries of all keys together are limited; forget resets the delay of one key', async (t) => {
  const { queue: keys, running, keys: worked, clock } = queue(t, { workers: 10, retriesPerSecond: 1, retryBurst: 2 });
  for (const key of ['a', 'b', 'c', 'd']) keys.add(key);
  for (const { fail } of running) fail();
  await turn();
  clock.advance(50);
  await turn();
  t.deepEqual(worked().slice(4), ['a', 'b'], 'the burst');
  clock.advance(950);
  await turn();
  t.deepEqual(worked().slice(6), ['c']);
  clock.advance(1_000);
  await turn();
  t.deepEqual(worked().slice(7), ['d']);
  t.is(keys.failuresOf('a'), 1);
  keys.forget('a');
  t.is(keys.failuresOf('a'), 0);
});

test('a repetition that was added before the state is read is not processed twice', async (t) => {
  const { queue: keys, running, keys: worked } = queue(t);
  keys.add('a');
  keys.add('a');
  keys.readsNow('a');
  running[0]?.done();
  await turn();
  t.deepEqual([worked(), keys.size], [['a'], 0]);
});

test('metrics: depth, added keys, waiting time, working time and retries by queue', async (t) => {
  const values = new Map<string, number[]>();
  const queues = new Set<string | undefined>();
  const note = ({ name }: { readonly name: string }) => {
    const record = (value: number, labels?: Readonly<Record<string, string>>) => {
      queues.add(labels?.['name']);
      values.set(name, [...(values.get(name) ?? []), value]);
    };
    return { add: record, set: record, observe: record };
  };
  const metrics = { counter: note, gauge: note, histogram: note, text: async () => '' };
  const { queue: keys, running, clock } = queue(t, { metrics });
  keys.add('a');
  keys.add('b');
  clock.advance(2_000);
  running[0]?.fail();
  await turn();
  clock.advance(500);
  running[1]?.done();
  await turn();
  t.deepEqual(values.get('workqueue_adds_total'), [1, 1, 1]);
  t.deepEqual(values.get('workqueue_queue_duration_seconds'), [0, 2, 0.45]);
  t.deepEqual(values.get('workqueue_work_duration_seconds'), [2, 0.5]);
  t.deepEqual(values.get('workqueue_retries_total'), [1]);
  t.is(Math.max(...(values.get('workqueue_depth') ?? [])), 1);
  t.is(values.get('workqueue_depth')?.at(-1), 0);
  t.deepEqual([...queues], ['test']);
});
