import { type BadHistory, gone, red, start } from './bad-history.ts';
import { all } from './script.ts';

/** Watches that omit, repeat, swap or invent events, and histories that are compacted too early. */
export const badWatches: readonly BadHistory[] = [
  {
    title: 'a watch drops an event',
    invariant: 'I6',
    write(s) {
      const { a2, a4 } = start(s);
      s.watch({ after: 0 }).event('ADDED', a2).event('MODIFIED', a4).close();
    },
  },
  {
    title: 'a watch drops the last event although it had time to deliver it',
    invariant: 'I6',
    write(s) {
      const { a2, b3 } = start(s);
      s.watch({ after: 0 }, { watch: 'short' }).event('ADDED', a2).event('ADDED', b3).close();
      s.recorder.finish('short', 4);
    },
  },
  {
    title: 'a watch delivers an event twice',
    invariant: 'I6',
    write(s) {
      const { a2, b3 } = start(s);
      s.watch({ after: 0 }).event('ADDED', a2).event('ADDED', b3).event('ADDED', b3).close();
    },
  },
  {
    title: 'a watch swaps two events',
    invariant: 'I6',
    write(s) {
      const { a2, b3, a4 } = start(s);
      s.watch({ after: 0 }).event('ADDED', b3).event('ADDED', a2).event('MODIFIED', a4).close();
    },
  },
  {
    title: 'a watch goes back in time after a reconnection',
    invariant: 'I6',
    write(s) {
      const { b3, a4 } = start(s);
      s.watch({ after: 2 }).event('ADDED', b3).event('MODIFIED', a4).close('cut');
      s.watch({ after: 4 }, { resumed: true }).event('ADDED', b3).event('MODIFIED', a4).close();
    },
  },
  {
    title: 'a resumed watch has a gap',
    invariant: 'I6',
    write(s) {
      const { a2, b3 } = start(s);
      const c5 = s.create('c', 5);
      s.watch({ after: 0 }).event('ADDED', a2).event('ADDED', b3).close('cut');
      s.watch({ after: 3 }, { resumed: true }).event('ADDED', c5).close();
    },
  },
  {
    title: 'a watch is resumed after a revision that it had not reached',
    invariant: 'I8',
    write(s) {
      const { a2 } = start(s);
      const c5 = s.create('c', 5);
      s.watch({ after: 0 }).event('ADDED', a2).close('cut');
      s.watch({ after: 4 }, { resumed: true }).event('ADDED', c5).close();
    },
  },
  {
    title: 'a watch that starts after a revision delivers that revision itself',
    invariant: 'I6',
    write(s) {
      const { b3, a4 } = start(s);
      s.watch({ after: 3 }).event('ADDED', b3).event('MODIFIED', a4).close();
    },
  },
  {
    title: 'a watch from a future revision delivers older events',
    invariant: 'I6',
    write(s) {
      const { a4 } = start(s);
      s.watch({ after: 100 }).event('MODIFIED', a4).close();
    },
  },
  {
    title: 'an update is delivered as ADDED',
    invariant: 'I6',
    write(s) {
      const { a2, b3, a4 } = start(s);
      s.watch({ after: 0 }).event('ADDED', a2).event('ADDED', b3).event('ADDED', a4).close();
    },
  },
  {
    title: 'an object that begins to match a selector is delivered as MODIFIED',
    invariant: 'I6',
    write(s) {
      start(s);
      const b5 = s.replace('b', 5, { labels: { colour: 'red' } });
      s.watch({ after: 4 }, { selection: red }).event('MODIFIED', b5).close();
    },
  },
  {
    title: 'an object that ceases to match a selector is not deleted',
    invariant: 'I6',
    write(s) {
      start(s);
      s.replace('a', 5, { labels: { colour: 'blue' } });
      s.watch({ after: 4 }, { selection: red, watch: 'red' }).close();
      s.recorder.finish('red', 5);
    },
  },
  {
    title: 'an object that ceases to match a selector is deleted with its new state',
    invariant: 'I6',
    write(s) {
      start(s);
      const a5 = s.replace('a', 5, { labels: { colour: 'blue' } });
      s.watch({ after: 4 }, { selection: red }).event('DELETED', a5).close();
    },
  },
  {
    title: 'a watch with a selector delivers an object that does not match',
    invariant: 'I6',
    write(s) {
      const { a2, b3 } = start(s);
      s.watch({ after: 0 }, { selection: red }).event('ADDED', a2).event('ADDED', b3).close();
    },
  },
  {
    title: 'an event contains the state of another revision',
    invariant: 'I6',
    write(s) {
      const { a2, b3, a4 } = start(s);
      s.watch({ after: 0 })
        .event('ADDED', a2)
        .event('ADDED', b3)
        .event('MODIFIED', { ...a2, revision: a4.revision })
        .close();
    },
  },
  {
    title: 'a deletion contains an older state than the last one',
    invariant: 'I6',
    write(s) {
      const { a2 } = start(s);
      s.remove('a', 5, { but: { ...gone(a2, 5) } });
    },
  },
  {
    title: 'two watches contradict each other about one revision',
    invariant: 'I3',
    write(s) {
      const { b3 } = start(s);
      s.watch({ after: 4 }).event('DELETED', gone(b3, 5)).close();
      s.create('c', 5);
    },
  },
  {
    title: 'split brain: two servers assign one revision to two states of one object',
    invariant: 'I3',
    write(s) {
      const { a4 } = start(s);
      s.replace('a', 5, { expect: 4, start: s.time + 1, end: s.time + 9 });
      s.watch({ after: 4 })
        .event('MODIFIED', { ...a4, revision: 5, values: { token: 'other' } })
        .close();
      s.replace('a', 5, { start: s.time - 8, end: s.time + 3, unseen: true });
    },
  },
  {
    title: 'an early bookmark',
    invariant: 'I7',
    write(s) {
      const { a2, b3, a4 } = start(s);
      s.watch({ after: 0 }).event('ADDED', a2).bookmark(4).event('ADDED', b3).event('MODIFIED', a4).close();
    },
  },
  {
    title: 'a bookmark goes back',
    invariant: 'I7',
    write(s) {
      const { a2, b3, a4 } = start(s);
      s.watch({ after: 0 }).event('ADDED', a2).event('ADDED', b3).event('MODIFIED', a4).bookmark(3).close();
    },
  },
  {
    title: 'a bookmark of a revision whose write had not begun',
    invariant: 'I7',
    write(s) {
      start(s);
      s.watch({ after: 4 }).bookmark(5).close();
      s.create('c', 5);
    },
  },
  {
    title: 'the initial events of a watch lack an object',
    invariant: 'I6',
    write(s) {
      const { a4 } = start(s);
      s.watch({ state: 'fresh' }).event('ADDED', a4).bookmark(4, true).close();
    },
  },
  {
    title: 'a fresh watch until its timeout delivers nothing although an object always existed',
    invariant: 'I6',
    write(s) {
      start(s);
      s.time += 50;
      const quiet = s.watch({ state: 'fresh' });
      s.time += 50;
      quiet.close('ended');
    },
  },
  {
    title: 'the initial events of a fresh watch are stale',
    invariant: 'I6',
    write(s) {
      const { a2, b3, a4 } = start(s);
      s.remove('b', 5);
      const c6 = s.create('c', 6);
      s.watch({ state: 'fresh' })
        .event('ADDED', a4)
        .event('ADDED', b3)
        .event('DELETED', gone(b3, 5))
        .event('ADDED', c6)
        .close();
      void a2;
    },
  },
  {
    title: 'a change is lost between the initial events and the first one after them',
    invariant: 'I6',
    write(s) {
      const { b3 } = start(s);
      const a5 = s.replace('a', 5, { start: s.time + 50, end: s.time + 60 });
      const c6 = s.create('c', 6, { start: s.time + 1, end: s.time + 9 });
      void a5;
      s.watch({ state: 'any' }).event('ADDED', b3).event('ADDED', c6).close();
    },
  },
  {
    title: 'a revision is reported as gone while it must be retained',
    invariant: 'I8',
    write(s) {
      start(s);
      s.watch({ after: 3 }).close('gone');
    },
  },
  {
    title: 'a revision is reported as gone although only earlier ones were released',
    invariant: 'I8',
    write(s) {
      start(s);
      s.recorder.release(3);
      s.time += 1;
      s.watch({ after: 3 }).close('gone');
    },
  },
  {
    title: 'a revision is reported as gone before it was released',
    invariant: 'I8',
    write(s) {
      start(s);
      s.watch({ after: 2 }).close('gone');
      s.time += 1;
      s.recorder.release(3);
    },
  },
  {
    title: 'a watch that has reached retained revisions ends because older history is gone',
    invariant: 'I8',
    write(s) {
      const { a2, b3, a4 } = start(s);
      s.recorder.release(3);
      s.time += 1;
      s.watch({ after: 0 }).event('ADDED', a2).event('ADDED', b3).event('MODIFIED', a4).close('gone');
    },
  },
  {
    title: 'a watch with a complete initial state ends because older history is gone',
    invariant: 'I8',
    write(s) {
      const { b3, a4 } = start(s);
      s.recorder.release(3);
      s.time += 1;
      s.watch({ state: 'fresh' }).event('ADDED', a4).event('ADDED', b3).bookmark(4, true).close('gone');
    },
  },
  {
    title: 'an exact list is reported as gone while it must be retained',
    invariant: 'I8',
    write(s) {
      start(s);
      const list = s.recorder.nextList();
      const op = { do: 'list', selection: all, at: { at: 'exact', revision: 3 }, list, page: 0 } as const;
      s.recorder.call({
        client: 'c',
        server: 's',
        start: s.time,
        op,
        reply: { is: 'refused', code: 410, reason: 'Expired' },
      });
    },
  },
];
