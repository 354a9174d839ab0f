import test from 'ava';
import { KeptWhileUsed } from '../../src/watch-cache/kept-while-used.ts';

const holder = (dropped: string[], name: string) => ({ drop: () => dropped.push(name) });

test('beyond the limit copies go that were used longest ago, never the one just made', (t) => {
  const dropped: string[] = [];
  const blocks = new KeptWhileUsed(100, 2_000);
  const [a, b, c] = ['a', 'b', 'c'].map((name) => holder(dropped, name));
  if (a === undefined || b === undefined || c === undefined) return t.fail();
  blocks.touch(a, 40);
  blocks.touch(b, 40);
  blocks.touch(a, 40);
  blocks.touch(c, 40);
  t.deepEqual(dropped, ['b']);
  t.is(blocks.bytes, 80);
  blocks.touch(b, 500);
  t.deepEqual(dropped, ['b', 'a', 'c']);
  t.is(blocks.bytes, 500);
  blocks.forget(b);
  t.is(blocks.bytes, 0);
});

test('a copy that nobody uses goes by itself, one in use stays', async (t) => {
  const dropped: string[] = [];
  const blocks = new KeptWhileUsed(1000, 200);
  const [idle, used] = [holder(dropped, 'idle'), holder(dropped, 'used')];
  blocks.touch(idle, 10);
  blocks.touch(used, 10);
  // The timer of the blocks keeps nothing alive; this one does, and uses one of them.
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      blocks.touch(used, 10);
      if (dropped.length === 0) return;
      clearInterval(timer);
      resolve();
    }, 20);
  });
  t.deepEqual(dropped, ['idle']);
  t.is(blocks.bytes, 10);
});
