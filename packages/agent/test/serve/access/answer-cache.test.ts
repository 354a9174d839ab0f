import { FakeClock } from '@keelson/core/runtime';
import test from 'ava';
import { AnswerCache } from '../../../src/serve/access/answer-cache.ts';

function counting(limits: { limit?: number; maxPending?: number } = {}) {
  const clock = new FakeClock();
  const asked: string[] = [];
  const cache = new AnswerCache<string>({ clock, ttlMs: () => 1000, ...limits });
  const get = (question: string) =>
    cache.get(question, async () => {
      asked.push(question);
      return question.toUpperCase();
    });
  return { clock, asked, cache, get };
}

test('when the cache is full, the least recently used results are removed', async (t) => {
  const { asked, get } = counting({ limit: 2 });
  for (const question of ['a', 'b', 'a', 'c']) t.is(await get(question), question.toUpperCase());
  t.deepEqual(asked, ['a', 'b', 'c']);
  await get('a');
  t.is(asked.length, 3, 'a was asked for again before c came');
  await get('b');
  t.deepEqual(asked, ['a', 'b', 'c', 'b']);
});

test('concurrent callers share the result or the failure, and a failure is not cached', async (t) => {
  const { cache } = counting();
  let asked = 0;
  const ask = async () => {
    asked += 1;
    if (asked === 1) throw new Error('away');
    return 'yes';
  };
  const both = await Promise.allSettled([cache.get('q', ask), cache.get('q', ask)]);
  t.deepEqual(
    both.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  t.is(asked, 1);
  t.deepEqual(await Promise.all([cache.get('q', ask), cache.get('q', ask)]), ['yes', 'yes']);
  t.is(asked, 2);
});

test('reviews above the concurrency limit are 503, except those that share a running one', async (t) => {
  const { cache } = counting({ maxPending: 1 });
  let answer: (text: string) => void = () => {};
  const slow = cache.get('a', () => new Promise((resolve) => (answer = resolve)));
  await t.throwsAsync(
    cache.get('b', async () => 'b'),
    { message: /too many/ },
  );
  const shared = cache.get('a', async () => 'never');
  answer('a');
  t.deepEqual(await Promise.all([slow, shared]), ['a', 'a']);
  t.is(await cache.get('b', async () => 'b'), 'b');
});
