import { FakeClock } from '@keelson/core/runtime';
import test from 'ava';
import { WatchScheduler } from '../src/watch/watch-scheduler.ts';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Counts how often it was served; each time costs `ms` of the clock. */
function pumped(clock: FakeClock, ms: number) {
  return {
    count: 0,
    pump(): void {
      this.count += 1;
      clock.advance(ms);
    },
  };
}

test('a single event is sent in its turn; events after an expensive pass wait three times its duration', async (t) => {
  const clock = new FakeClock();
  const scheduler = new WatchScheduler(clock);
  const pump = pumped(clock, 5);
  scheduler.add(pump);
  await turn();
  t.is(pump.count, 1);
  const other = pumped(clock, 0);
  scheduler.add(pump);
  clock.advance(14);
  scheduler.add(other);
  await turn();
  t.deepEqual([pump.count, other.count], [1, 0]);
  clock.advance(1);
  t.deepEqual([pump.count, other.count], [2, 1], 'both are served together');
  // The second pass took another 5 ms.
  clock.advance(20);
  scheduler.add(pump);
  await turn();
  t.is(pump.count, 3, 'the pause is over');
});

test('the pause after a pass is at most 20 ms, and none after a pass that took no time', async (t) => {
  const clock = new FakeClock();
  const scheduler = new WatchScheduler(clock);
  const slow = pumped(clock, 1_000);
  scheduler.add(slow);
  await turn();
  const quick = pumped(clock, 0);
  scheduler.add(quick);
  clock.advance(19);
  t.is(quick.count, 0);
  clock.advance(1);
  t.is(quick.count, 1);
  scheduler.add(quick);
  await turn();
  t.is(quick.count, 2);
});

test('a watcher with unsent events continues without a pause, and waiting watchers with it', async (t) => {
  const clock = new FakeClock();
  const scheduler = new WatchScheduler(clock);
  const first = pumped(clock, 5);
  scheduler.add(first);
  await turn();
  const waiting = pumped(clock, 0);
  const drained = pumped(clock, 0);
  scheduler.add(waiting);
  scheduler.addNow(drained);
  await turn();
  t.deepEqual([waiting.count, drained.count], [1, 1]);
  clock.advance(100);
  await turn();
  t.deepEqual([first.count, waiting.count, drained.count], [1, 1, 1]);
});
