import { setMaxListeners } from 'node:events';
import { FakeClock } from '@keelson/core/runtime';
import test from 'ava';
import fc from 'fast-check';
import { TokenBucket } from '../../src/retry/rate-limits.ts';

const never = new AbortController().signal;
setMaxListeners(0, never);
const turn = () => new Promise((resolve) => setImmediate(resolve));

test('a burst passes at once, then requests pass at the configured rate in the order of arrival', async (t) => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, 2, 3);
  const passed: number[] = [];
  for (let at = 0; at < 8; at += 1) void bucket.take(never).then(() => passed.push(at));
  await turn();
  t.deepEqual(passed, [0, 1, 2]);
  clock.advance(499);
  await turn();
  t.is(passed.length, 3);
  clock.advance(1);
  await turn();
  t.deepEqual(passed, [0, 1, 2, 3]);
  clock.advance(2_000);
  await turn();
  t.deepEqual(passed, [0, 1, 2, 3, 4, 5, 6, 7]);
});

test('an aborted request releases its token, and an idle bucket never exceeds the burst', async (t) => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, 1, 2);
  const leaving = new AbortController();
  t.true(await bucket.take(never));
  t.true(await bucket.take(never));
  const left = bucket.take(leaving.signal);
  leaving.abort();
  t.false(await left);
  t.false(await bucket.take(leaving.signal));
  let passed = false;
  void bucket.take(never).then(() => {
    passed = true;
  });
  clock.advance(1_000);
  await turn();
  t.true(passed, 'the place of the one that left was not used up');
  clock.advance(1_000_000);
  t.true(await bucket.take(never));
  t.true(await bucket.take(never));
  const third = bucket.take(leaving.signal);
  t.false(await third);
});

test('at most burst + qps x time requests pass', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 10 }),
      fc.array(fc.tuple(fc.nat({ max: 5 }), fc.nat({ max: 700 })), { maxLength: 20 }),
      async (qps, burst, steps) => {
        const clock = new FakeClock();
        const bucket = new TokenBucket(clock, qps, burst);
        let passed = 0;
        for (const [asks, ms] of steps) {
          for (let at = 0; at < asks; at += 1) void bucket.take(never).then(() => passed++);
          clock.advance(ms);
          await turn();
          if (passed > burst + (qps * clock.monotonic()) / 1000 + 1e-6) return false;
        }
        return true;
      },
    ),
    { numRuns: 60 },
  );
  t.pass();
});
