import test from 'ava';
import { FakeClock } from '../../src/runtime/fake-clock.ts';
import { TurnQueue } from '../../src/runtime/turn-queue.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Runs turns until the queue has run so many pieces, and counts those of each turn that ran any. */
async function turnsOf(ran: readonly string[], all: number): Promise<number[]> {
  const counts: number[] = [];
  for (let i = 0; i < 10_000 && ran.length < all; i++) {
    const before = ran.length;
    await turn();
    if (ran.length > before) counts.push(ran.length - before);
  }
  return counts;
}

test('cheap pieces of one turn run together at its end, in the order of arrival', async (t) => {
  const queue = new TurnQueue(new FakeClock());
  const ran: string[] = [];
  for (let i = 0; i < 100; i++) queue.add(() => void ran.push(`${i}`));
  t.deepEqual(ran, []);
  t.deepEqual(await turnsOf(ran, 100), [100]);
  t.deepEqual(
    ran,
    Array.from({ length: 100 }, (_, i) => `${i}`),
  );
});

test('expensive pieces are spread over turns of ten milliseconds', async (t) => {
  const clock = new FakeClock();
  const queue = new TurnQueue(clock);
  const ran: string[] = [];
  for (let i = 0; i < 60; i++) {
    queue.add(() => {
      clock.advance(3);
      ran.push(`${i}`);
    });
  }
  const counts = await turnsOf(ran, 60);
  t.true(Math.max(...counts) <= 4, `${counts}`);
});

test('what pieces do in their promises counts as well, from the second group on', async (t) => {
  const clock = new FakeClock();
  const queue = new TurnQueue(clock);
  const ran: string[] = [];
  for (let i = 0; i < 60; i++) {
    queue.add(() => {
      void Promise.resolve().then(() => {
        clock.advance(8);
        ran.push(`${i}`);
      });
    });
  }
  const [first = 0, second = 0, ...rest] = await turnsOf(ran, 60);
  t.true(first <= 16 && second <= 16, `${first} ${second}`);
  t.true(
    rest.slice(1).every((count) => count <= 2),
    `${rest}`,
  );
});

test('urgent pieces run first, and other pieces still progress when every second piece is urgent', async (t) => {
  const queue = new TurnQueue(new FakeClock());
  const ran: string[] = [];
  for (const name of ['a', 'b', 'c', 'd']) queue.add(() => void ran.push(name));
  for (const name of ['U', 'V']) queue.add(() => void ran.push(name), { urgent: true });
  await turnsOf(ran, 6);
  t.is(ran.join(''), 'UaVbcd');
});

test('the delay is the work that was done while the next piece has waited, and none when nothing waits', async (t) => {
  const clock = new FakeClock();
  const queue = new TurnQueue(clock);
  t.is(queue.delayMs(), 0);
  for (let i = 0; i < 30; i++) queue.add(() => clock.advance(10));
  let passed = false;
  void queue.pass().then(() => {
    passed = true;
  });
  clock.advance(300);
  t.is(queue.delayMs(), 0, 'time without work does not count');
  const delays: number[] = [];
  while (!passed) {
    delays.push(queue.delayMs());
    await turn();
  }
  t.true(Math.max(...delays) >= 200 && Math.max(...delays) <= 300, `${delays}`);
  t.is(queue.delayMs(), 0);
});

test('callers alternate: a caller with many pieces delays each other caller by one piece at a time', async (t) => {
  const clock = new FakeClock();
  const queue = new TurnQueue(clock);
  const ran: string[] = [];
  const add = (caller: string, name: string) =>
    queue.add(
      () => {
        clock.advance(4);
        ran.push(name);
      },
      { caller },
    );
  for (let i = 0; i < 50; i++) add('hog', 'h');
  await turnsOf(ran, 20);
  t.true(queue.delayMs('hog') >= 20);
  t.is(queue.delayMs('jane'), 0);
  const before = ran.length;
  for (const name of ['1', '2', '3']) add('jane', name);
  await turnsOf(ran, 53);
  t.is(ran.slice(before).join('').replace(/h+$/, ''), 'h1h2h3');
  t.is(queue.delayMs('hog'), 0);
});

test('a slice of long work runs after all pieces that waited before it, of any owner, and before later ones', async (t) => {
  const queue = new TurnQueue(new FakeClock());
  const ran: string[] = [];
  for (const name of ['a', 'b', 'c']) queue.add(() => void ran.push(name), { caller: 'jane' });
  void queue.pass().then(() => ran.push('S'));
  for (const name of ['d', 'e', 'f', 'g']) queue.add(() => void ran.push(name), { caller: 'jane' });
  await turnsOf(ran, 8);
  const slice = ran.indexOf('S');
  t.true(slice >= 3 && slice <= 8, `${ran.join('')}`);
  t.is(ran.filter((name) => name !== 'S').join(''), 'abcdefg');
  const alone: string[] = [];
  await queue.pass();
  alone.push('S');
  t.deepEqual(alone, ['S'], 'a slice that is alone waits for nothing');
});

test('functions for the end of a turn run after all of its pieces and their promises, in the order of the calls', async (t) => {
  const queue = new TurnQueue(new FakeClock());
  const ran: string[] = [];
  for (let i = 0; i < 40; i++) {
    queue.add(() => {
      void Promise.resolve().then(() => {
        ran.push('piece');
        queue.atEnd(() => void ran.push(`${i}`));
      });
    });
  }
  await turnsOf(ran, 80);
  t.deepEqual(ran, [...Array.from({ length: 40 }, () => 'piece'), ...Array.from({ length: 40 }, (_, i) => `${i}`)]);
});

test('a function for the end of a turn does not wait longer than a group and a millisecond', async (t) => {
  const clock = new FakeClock();
  const queue = new TurnQueue(clock);
  const ran: string[] = [];
  queue.add(() => queue.atEnd(() => void ran.push('end')));
  for (let i = 0; i < 39; i++) {
    queue.add(() => {
      clock.advance(0.1);
      ran.push('piece');
    });
  }
  await turnsOf(ran, 40);
  t.is(ran.indexOf('end'), 15);
});

test('without a turn that runs, functions for its end run when the present promises have settled', async (t) => {
  const queue = new TurnQueue(new FakeClock());
  const ran: string[] = [];
  await turn();
  queue.atEnd(() => void ran.push('end'));
  t.deepEqual(ran, []);
  await Promise.resolve();
  await turn();
  t.deepEqual(ran, ['end']);
});
