import { type BadHistory, red, start } from './bad-history.ts';

/** Answers to gets and lists that no state explains. */
export const badReads: readonly BadHistory[] = [
  {
    title: 'a stale consistent get',
    invariant: 'I5',
    write(s) {
      const { a2 } = start(s);
      s.get('a', a2);
    },
  },
  {
    title: 'a consistent get misses what another client had already observed in a watch',
    invariant: 'I5',
    write(s) {
      const { a4 } = start(s);
      const began = s.time + 1;
      const a5 = s.replace('a', 5, { expect: 4, start: began, end: began + 50 });
      s.time = began + 10;
      s.watch({ after: 4 }).event('MODIFIED', a5).close();
      s.get('a', a4, { start: began + 20, end: began + 30 });
    },
  },
  {
    title: 'a consistent get does not find an existing object',
    invariant: 'I5',
    write(s) {
      start(s);
      s.get('a', undefined);
    },
  },
  {
    title: 'a consistent get returns a deleted object',
    invariant: 'I5',
    write(s) {
      const { b3 } = start(s);
      s.remove('b', 5);
      s.get('b', b3);
    },
  },
  {
    title: 'a get not older than a revision is older',
    invariant: 'I5',
    write(s) {
      const { a2 } = start(s);
      s.get('a', a2, { at: 4 });
    },
  },
  {
    title: 'a get returns a state from the future',
    invariant: 'I3',
    write(s) {
      start(s);
      const at = s.time + 5;
      s.time += 100;
      const a5 = s.replace('a', 5);
      s.get('a', a5, { start: at, end: at + 5, at: 'any' });
    },
  },
  {
    title: 'a get returns another object',
    invariant: 'I5',
    write(s) {
      const { b3 } = start(s);
      s.get('a', b3);
    },
  },
  {
    title: 'a stale consistent list with its true revision',
    invariant: 'I5',
    write(s) {
      const { a2, b3 } = start(s);
      s.list([[a2, b3]], 3);
    },
  },
  {
    title: 'a stale consistent list with a newer revision',
    invariant: 'I5',
    write(s) {
      const { a2, b3 } = start(s);
      s.list([[a2, b3]], 4);
    },
  },
  {
    title: 'the state goes back for a client that switches to another server',
    invariant: 'I5',
    write(s) {
      const { a2, a4, b3 } = start(s);
      s.list([[a4, b3]], 4);
      s.list([[a2, b3]], 3);
    },
  },
  {
    title: 'a list lacks an object',
    invariant: 'I5',
    write(s) {
      const { a4 } = start(s);
      s.list([[a4]], 4);
    },
  },
  {
    title: 'a list contains a deleted object',
    invariant: 'I5',
    write(s) {
      const { a4, b3 } = start(s);
      s.remove('b', 5);
      s.list([[a4, b3]], 5);
    },
  },
  {
    title: 'a list is out of order',
    invariant: 'I5',
    write(s) {
      const { a4, b3 } = start(s);
      s.list([[b3, a4]], 4);
    },
  },
  {
    title: 'a list contains an object twice',
    invariant: 'I5',
    write(s) {
      const { a4, b3 } = start(s);
      s.list([[a4, a4, b3]], 4);
    },
  },
  {
    title: 'a list with a selector contains an object that does not match',
    invariant: 'I5',
    write(s) {
      const { a4, b3 } = start(s);
      s.list([[a4, b3]], 4, { selection: red });
    },
  },
  {
    title: 'an exact list has another revision',
    invariant: 'I5',
    write(s) {
      const { a4, b3 } = start(s);
      s.list([[a4, b3]], 4, { exact: 3 });
    },
  },
  {
    title: 'an exact list contains the current state under the old revision',
    invariant: 'I5',
    write(s) {
      const { a4, b3 } = start(s);
      s.list([[a4, b3]], 3, { exact: 3 });
    },
  },
  {
    title: 'a list not older than a revision is older',
    invariant: 'I5',
    write(s) {
      const { a2, b3 } = start(s);
      s.list([[a2, b3]], 3, { at: 4 });
    },
  },
  {
    title: 'a list of a revision whose write had not begun',
    invariant: 'I5',
    write(s) {
      const { a4, b3 } = start(s);
      s.list([[a4, b3]], 7, { at: 'any' });
      s.create('c', 5, { start: s.time + 5 });
    },
  },
  {
    title: 'pages of one list have different revisions',
    invariant: 'I9',
    write(s) {
      const { a4, b3 } = start(s);
      s.list([[a4], [b3]], [4, 5]);
    },
  },
  {
    title: 'the second page contains changes after the first one, under its revision',
    invariant: 'I9',
    write(s) {
      const { a4, b3 } = start(s);
      const c5 = s.create('c', 5, { start: s.time + 8, end: s.time + 9 });
      s.list([[a4], [b3, c5]], 4, { start: s.time - 2, end: s.time + 20 });
    },
  },
  {
    title: 'an object is on both sides of a page boundary',
    invariant: 'I9',
    write(s) {
      const { a4, b3 } = start(s);
      s.list([[a4, b3], [b3]], 4);
    },
  },
  {
    title: 'an object is missing between two pages',
    invariant: 'I9',
    write(s) {
      const { a4, b3 } = start(s);
      const c5 = s.create('c', 5);
      void b3;
      s.list([[a4], [c5]], 5);
    },
  },
];
