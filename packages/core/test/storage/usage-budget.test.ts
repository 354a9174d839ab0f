import test from 'ava';
import { FakeClock } from '../../src/runtime.ts';
import { UsageBudget } from '../../src/storage/usage-budget.ts';

const owner = (dropped: string[], name: string) => ({ drop: () => dropped.push(name) });

test('beyond the limit the least recently used data is dropped, except that of the current owner', (t) => {
  const dropped: string[] = [];
  const budget = new UsageBudget(new FakeClock(), 100, 2_000);
  const [a, b, c] = [owner(dropped, 'a'), owner(dropped, 'b'), owner(dropped, 'c')];
  budget.touch(a, 40);
  budget.touch(b, 40);
  budget.touch(a, 40);
  budget.touch(c, 40);
  t.deepEqual(dropped, ['b']);
  t.is(budget.usedBytes, 80);
  budget.touch(b, 500);
  t.deepEqual(dropped, ['b', 'a', 'c']);
  t.is(budget.usedBytes, 500);
  budget.forget(b);
  t.is(budget.usedBytes, 0);
  t.false(budget.includes(b));
});

test('data that is not used for up to two idle times is dropped, data in use stays', (t) => {
  const clock = new FakeClock();
  const dropped: string[] = [];
  const budget = new UsageBudget(clock, 1000, 200);
  const [idle, used] = [owner(dropped, 'idle'), owner(dropped, 'used')];
  budget.touch(idle, 10);
  budget.touch(used, 10);
  clock.advance(200);
  t.deepEqual(dropped, []);
  t.true(budget.includes(idle), 'an idle owner is still included until it is dropped');
  budget.touch(used, 10);
  clock.advance(200);
  t.deepEqual(dropped, ['idle']);
  t.is(budget.usedBytes, 10);
  clock.advance(400);
  t.deepEqual(dropped, ['idle', 'used']);
  budget.touch(idle, 10);
  clock.advance(400);
  t.deepEqual(dropped, ['idle', 'used', 'idle'], 'the budget sweeps again after it was empty');
});
