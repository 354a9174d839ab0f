import test from 'ava';
import { FakeClock } from '../../src/runtime/fake-clock.ts';
import { KeyTurns } from '../../src/storage/guaranteed-update.ts';

/** Lets everything go on that needs no time. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('work on one key runs in order, and each piece receives the result of the previous one', async (t) => {
  const turns = new KeyTurns<number>(new FakeClock());
  const steps: string[] = [];
  const work = (n: number) =>
    turns.run('/a', undefined, async (before) => {
      steps.push(`${n} begins after ${before}`);
      await settled();
      steps.push(`${n} ends`);
      return n;
    });
  t.deepEqual(await Promise.all([work(1), work(2), work(3)]), [1, 2, 3]);
  await settled();
  await work(4);
  t.deepEqual(steps, [
    '1 begins after undefined',
    '1 ends',
    '2 begins after 1',
    '2 ends',
    '3 begins after 2',
    '3 ends',
    '4 begins after undefined',
    '4 ends',
  ]);
});

test('work that fails is not passed on, and work on another key is not waited for', async (t) => {
  const turns = new KeyTurns<number>(new FakeClock());
  const failed = turns.run('/a', undefined, async () => {
    await settled();
    throw new Error('no');
  });
  const next = turns.run('/a', undefined, async (before) => before ?? 7);
  let begun = false;
  const other = turns.run('/b', undefined, async () => {
    begun = true;
    return 0;
  });
  t.true(begun);
  await t.throwsAsync(failed, { message: 'no' });
  t.is(await next, 7);
  await other;
});

test('a caller waits at most a second for work that does not end, and not after its signal is aborted', async (t) => {
  const clock = new FakeClock();
  const turns = new KeyTurns<number>(clock);
  void turns.run('/a', undefined, () => new Promise<number>(() => {}));
  const begun: string[] = [];
  const patient = turns.run('/a', undefined, async () => begun.push('patient'));
  const leaving = new AbortController();
  const gone = turns.run('/a', leaving.signal, async () => begun.push('gone'));
  const neverThere = turns.run('/a', AbortSignal.abort(), async () => begun.push('never there'));
  await neverThere;
  leaving.abort();
  await gone;
  t.deepEqual(begun, ['never there', 'gone']);
  clock.advance(999);
  await settled();
  t.is(begun.length, 2);
  clock.advance(1);
  await patient;
  t.is(begun.at(-1), 'patient');
});
