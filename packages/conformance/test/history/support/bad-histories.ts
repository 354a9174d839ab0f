import type { Invariant, SeenObject, Selection } from '../../../src/index.ts';
import { all, keyOf, type Script } from './script.ts';

/** A history that no correct plane can have produced. */
export interface BadHistory {
  readonly title: string;
  readonly invariant: Invariant;
  /** False when the script has a watch of everything of its own. */
  readonly ledger?: false;
  write(script: Script): void;
}

const red: Selection = { kind: 'Part', labels: [{ key: 'colour', is: 'in', values: ['red'] }] };
const refused = (code: number) => ({ is: 'refused', code, reason: 'Conflict' }) as const;
const unknown = { is: 'unknown', why: 'cut' } as const;

/** Two objects; `a` changed once: revisions 2, 3, 4. */
function start(s: Script): { a2: SeenObject; b3: SeenObject; a4: SeenObject } {
  const a2 = s.create('a', 2, { labels: { colour: 'red' } });
  const b3 = s.create('b', 3, { labels: { colour: 'blue' } });
  const a4 = s.replace('a', 4, { expect: 2 });
  return { a2, b3, a4 };
}

/** A delete as a watch shows it. */
const gone = (object: SeenObject, revision: number): SeenObject => ({ ...object, revision });

export const badHistories: readonly BadHistory[] = [
  {
    title: 'an acknowledged write is in no watch',
    invariant: 'I6',
    write(s) {
      start(s);
      s.create('c', 5, { unseen: true });
      s.create('d', 6);
    },
  },
  {
    title: 'an acknowledged write was lost on restart: the name can be created again',
    invariant: 'I4',
    write(s) {
      start(s);
      s.recorder.mark('kill -9');
      s.create('a', 5, { but: { uid: 'other' } });
    },
  },
  {
    title: 'an acknowledged update was lost on restart: the next one is on the condition of the state before it',
    invariant: 'I4',
    write(s) {
      start(s);
      s.recorder.mark('kill -9');
      s.replace('a', 5, { expect: 2 });
    },
  },
  {
    title: 'an acknowledged delete never happened',
    invariant: 'I1',
    write(s) {
      const { a4 } = start(s);
      s.attempt({ do: 'delete', key: keyOf('a') }, { is: 'ok', uid: a4.uid });
    },
  },
  {
    title: 'a deleted object is changed afterwards',
    invariant: 'I1',
    write(s) {
      const { b3 } = start(s);
      s.attempt({ do: 'delete', key: keyOf('b') }, { is: 'ok', uid: b3.uid });
      s.replace('b', 5);
    },
  },
  {
    title: 'a revision is given twice, to different keys',
    invariant: 'I3',
    write(s) {
      start(s);
      s.create('c', 5);
      s.create('d', 5, { unseen: true });
    },
  },
  {
    title: 'a revision is used again after a restart',
    invariant: 'I3',
    write(s) {
      const { a4 } = start(s);
      s.watch({ after: 3 }).event('MODIFIED', a4).close('cut');
      s.recorder.mark('kill -9');
      s.create('e', 4, { unseen: true });
    },
  },
  {
    title: 'a later write gets a smaller revision',
    invariant: 'I3',
    write(s) {
      start(s);
      s.create('c', 8);
      s.create('d', 7);
    },
  },
  {
    title: 'a write gets a revision that a list had already reached',
    invariant: 'I3',
    write(s) {
      const { a4, b3 } = start(s);
      s.list([[a4, b3]], 9);
      s.create('c', 6);
    },
  },
  {
    title: 'a write gets a revision that a bookmark had already passed',
    invariant: 'I3',
    write(s) {
      start(s);
      s.watch({ after: 4 }).bookmark(9).close();
      s.create('c', 6);
    },
  },
  {
    title: 'a write is seen before it began',
    invariant: 'I3',
    write(s) {
      start(s);
      const early = s.time;
      s.time += 100;
      const c5 = s.create('c', 5);
      const now = s.time;
      s.time = early;
      s.watch({ after: 4 }).event('ADDED', c5).close();
      s.time = now;
    },
  },
  {
    title: 'two winners of one condition',
    invariant: 'I4',
    write(s) {
      start(s);
      s.replace('a', 5, { expect: 4, start: s.time + 1, end: s.time + 9 });
      s.replace('a', 6, { expect: 4, start: s.time - 7, end: s.time + 9 });
    },
  },
  {
    title: 'two winners of one creation',
    invariant: 'I4',
    write(s) {
      start(s);
      s.create('c', 5, { start: s.time + 1, end: s.time + 9 });
      s.create('c', 6, { start: s.time - 7, end: s.time + 9 });
    },
  },
  {
    title: 'two successful deletes of one object',
    invariant: 'I4',
    write(s) {
      const { b3 } = start(s);
      s.remove('b', 5);
      s.attempt({ do: 'delete', key: keyOf('b') }, { is: 'ok', uid: b3.uid });
    },
  },
  {
    title: 'a delete on the condition of a revision that was not current',
    invariant: 'I4',
    write(s) {
      start(s);
      s.remove('a', 5, { expect: 2 });
    },
  },
  {
    title: 'an update of something that had been deleted',
    invariant: 'I4',
    write(s) {
      start(s);
      s.remove('b', 5);
      s.replace('b', 6);
    },
  },
  {
    title: 'a condition refused although the named revision was current all the time',
    invariant: 'I4',
    write(s) {
      start(s);
      s.attempt({ do: 'delete', key: keyOf('a'), expect: 4 }, refused(409));
    },
  },
  {
    title: 'a creation refused although the name was free all the time',
    invariant: 'I4',
    write(s) {
      start(s);
      s.attempt({ do: 'create', key: keyOf('free'), token: 'x', labels: {}, values: { token: 'x' } }, refused(409));
    },
  },
  {
    title: 'an update answered with not found although the object was there all the time',
    invariant: 'I4',
    write(s) {
      start(s);
      s.attempt({ do: 'patch', key: keyOf('a'), token: 'x', values: { token: 'x' } }, refused(404));
    },
  },
  {
    title: 'a refused write takes effect',
    invariant: 'I2',
    write(s) {
      start(s);
      s.replace('a', 5, { reply: refused(409) });
    },
  },
  {
    title: 'a write of unknown outcome takes effect twice',
    invariant: 'I2',
    write(s) {
      start(s);
      const c5 = s.create('c', 5, { reply: unknown });
      s.remove('c', 6);
      s.log.push({ type: 'ADDED', object: { ...c5, uid: 'second', revision: 7 } });
    },
  },
  {
    title: 'a write that nobody asked for',
    invariant: 'I2',
    write(s) {
      const { b3 } = start(s);
      s.log.push({
        type: 'ADDED',
        object: { ...b3, key: keyOf('ghost'), uid: 'ghost', revision: 5, values: { token: 'ghost' } },
      });
    },
  },
  {
    title: 'a deletion that nobody asked for',
    invariant: 'I2',
    write(s) {
      const { b3 } = start(s);
      s.log.push({ type: 'DELETED', object: gone(b3, 5) });
    },
  },
  {
    title: 'a deleted object comes back',
    invariant: 'I2',
    write(s) {
      const { b3 } = start(s);
      s.remove('b', 5);
      s.log.push({ type: 'ADDED', object: { ...b3, revision: 6 } });
    },
  },
  {
    title: 'a patch forgets a field that another writer set',
    invariant: 'I1',
    write(s) {
      start(s);
      s.patch('a', 5, { one: '1' });
      s.patch('a', 6, { two: '2' }, { but: { values: { token: 'token-5', two: '2' } } });
    },
  },
  {
    title: 'an update leaves other labels than asked for',
    invariant: 'I1',
    write(s) {
      start(s);
      s.replace('a', 5, { labels: { colour: 'red' }, but: { labels: { colour: 'green' } } });
    },
  },
  {
    title: 'a write of the status changes the spec',
    invariant: 'I1',
    write(s) {
      start(s);
      s.status('a', 5, { phase: 'Running' }, { but: { values: { token: 'token-3', changed: 'yes' }, generation: 3 } });
    },
  },
  {
    title: 'a stale consistent get',
    invariant: 'I5',
    write(s) {
      const { a2 } = start(s);
      s.get('a', a2);
    },
  },
  {
    title: 'a consistent get misses what another client had already seen in a watch',
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
    title: 'a consistent get finds nothing where there is something',
    invariant: 'I5',
    write(s) {
      start(s);
      s.get('a', undefined);
    },
  },
  {
    title: 'a consistent get shows a deleted object',
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
    title: 'a get shows a state from the future',
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
    title: 'a get brings another object',
    invariant: 'I5',
    write(s) {
      const { b3 } = start(s);
      s.get('a', b3);
    },
  },
  {
    title: 'a stale consistent list, honest about its revision',
    invariant: 'I5',
    write(s) {
      const { a2, b3 } = start(s);
      s.list([[a2, b3]], 3);
    },
  },
  {
    title: 'a stale consistent list that claims a newer revision',
    invariant: 'I5',
    write(s) {
      const { a2, b3 } = start(s);
      s.list([[a2, b3]], 4);
    },
  },
  {
    title: 'time goes back for a client that moves to another server',
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
    title: 'a list shows a deleted object',
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
    title: 'a list shows an object twice',
    invariant: 'I5',
    write(s) {
      const { a4, b3 } = start(s);
      s.list([[a4, a4, b3]], 4);
    },
  },
  {
    title: 'a list with a selector shows what does not match',
    invariant: 'I5',
    write(s) {
      const { a4, b3 } = start(s);
      s.list([[a4, b3]], 4, { selection: red });
    },
  },
  {
    title: 'an exact list is of another revision',
    invariant: 'I5',
    write(s) {
      const { a4, b3 } = start(s);
      s.list([[a4, b3]], 4, { exact: 3 });
    },
  },
  {
    title: 'an exact list shows the present under the old revision',
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
    title: 'a list of a revision that nobody had begun to write',
    invariant: 'I5',
    write(s) {
      const { a4, b3 } = start(s);
      s.list([[a4, b3]], 7, { at: 'any' });
      s.create('c', 5, { start: s.time + 5 });
    },
  },
  {
    title: 'pages of one list are of different revisions',
    invariant: 'I9',
    write(s) {
      const { a4, b3 } = start(s);
      s.list([[a4], [b3]], [4, 5]);
    },
  },
  {
    title: 'the second page shows what came after the first one, under its revision',
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
    title: 'an object falls between two pages',
    invariant: 'I9',
    write(s) {
      const { a4, b3 } = start(s);
      const c5 = s.create('c', 5);
      void b3;
      s.list([[a4], [c5]], 5);
    },
  },
  {
    title: 'a watch drops an event',
    invariant: 'I6',
    write(s) {
      const { a2, a4 } = start(s);
      s.watch({ after: 0 }).event('ADDED', a2).event('MODIFIED', a4).close();
    },
  },
  {
    title: 'a watch drops the last event although it was given time',
    invariant: 'I6',
    write(s) {
      const { a2, b3 } = start(s);
      s.watch({ after: 0 }, { watch: 'short' }).event('ADDED', a2).event('ADDED', b3).close();
      s.recorder.finish('short', 4);
    },
  },
  {
    title: 'a watch shows an event twice',
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
    title: 'a resumed watch has a hole',
    invariant: 'I6',
    write(s) {
      const { a2, b3 } = start(s);
      const c5 = s.create('c', 5);
      s.watch({ after: 0 }).event('ADDED', a2).event('ADDED', b3).close('cut');
      s.watch({ after: 3 }, { resumed: true }).event('ADDED', c5).close();
    },
  },
  {
    title: 'a watch is resumed further on than it had come',
    invariant: 'I8',
    write(s) {
      const { a2 } = start(s);
      const c5 = s.create('c', 5);
      s.watch({ after: 0 }).event('ADDED', a2).close('cut');
      s.watch({ after: 4 }, { resumed: true }).event('ADDED', c5).close();
    },
  },
  {
    title: 'a watch that begins at a revision shows that revision itself',
    invariant: 'I6',
    write(s) {
      const { b3, a4 } = start(s);
      s.watch({ after: 3 }).event('ADDED', b3).event('MODIFIED', a4).close();
    },
  },
  {
    title: 'a watch from a future revision shows older events',
    invariant: 'I6',
    write(s) {
      const { a4 } = start(s);
      s.watch({ after: 100 }).event('MODIFIED', a4).close();
    },
  },
  {
    title: 'an update is shown as ADDED',
    invariant: 'I6',
    write(s) {
      const { a2, b3, a4 } = start(s);
      s.watch({ after: 0 }).event('ADDED', a2).event('ADDED', b3).event('ADDED', a4).close();
    },
  },
  {
    title: 'an object that enters a selector is shown as MODIFIED',
    invariant: 'I6',
    write(s) {
      start(s);
      const b5 = s.replace('b', 5, { labels: { colour: 'red' } });
      s.watch({ after: 4 }, { selection: red }).event('MODIFIED', b5).close();
    },
  },
  {
    title: 'an object that leaves a selector is not taken away',
    invariant: 'I6',
    write(s) {
      start(s);
      s.replace('a', 5, { labels: { colour: 'blue' } });
      s.watch({ after: 4 }, { selection: red, watch: 'red' }).close();
      s.recorder.finish('red', 5);
    },
  },
  {
    title: 'an object that leaves a selector is shown in its new state',
    invariant: 'I6',
    write(s) {
      start(s);
      const a5 = s.replace('a', 5, { labels: { colour: 'blue' } });
      s.watch({ after: 4 }, { selection: red }).event('DELETED', a5).close();
    },
  },
  {
    title: 'a watch with a selector shows what does not match',
    invariant: 'I6',
    write(s) {
      const { a2, b3 } = start(s);
      s.watch({ after: 0 }, { selection: red }).event('ADDED', a2).event('ADDED', b3).close();
    },
  },
  {
    title: 'an event shows the content of another revision',
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
    title: 'a deletion shows an older state than the last one',
    invariant: 'I6',
    write(s) {
      const { a2 } = start(s);
      s.remove('a', 5, { but: { ...gone(a2, 5) } });
    },
  },
  {
    title: 'two watches disagree about one revision',
    invariant: 'I3',
    write(s) {
      const { b3 } = start(s);
      s.watch({ after: 4 }).event('DELETED', gone(b3, 5)).close();
      s.create('c', 5);
    },
  },
  {
    title: 'split brain: two servers give one revision to two states of one object',
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
    title: 'a bookmark of a revision that nobody had begun to write',
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
    title: 'a fresh watch that runs its time shows nothing where there always was something',
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
      s.watch({ state: 'fresh' }).event('ADDED', a4).event('ADDED', b3).event('DELETED', gone(b3, 5)).event('ADDED', c6).close();
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
    title: 'a revision is said to be gone while it must be kept',
    invariant: 'I8',
    write(s) {
      start(s);
      s.watch({ after: 3 }).close('gone');
    },
  },
  {
    title: 'a revision is said to be gone after the store let go of what is before it alone',
    invariant: 'I8',
    write(s) {
      start(s);
      s.recorder.release(3);
      s.time += 1;
      s.watch({ after: 3 }).close('gone');
    },
  },
  {
    title: 'a revision is said to be gone before the store was told to let go of it',
    invariant: 'I8',
    write(s) {
      start(s);
      s.watch({ after: 2 }).close('gone');
      s.time += 1;
      s.recorder.release(3);
    },
  },
  {
    title: 'a watch that has seen what is kept ends because older history is gone',
    invariant: 'I8',
    write(s) {
      const { a2, b3, a4 } = start(s);
      s.recorder.release(3);
      s.time += 1;
      s.watch({ after: 0 }).event('ADDED', a2).event('ADDED', b3).event('MODIFIED', a4).close('gone');
    },
  },
  {
    title: 'a watch whose initial state is told to be complete ends because older history is gone',
    invariant: 'I8',
    write(s) {
      const { b3, a4 } = start(s);
      s.recorder.release(3);
      s.time += 1;
      s.watch({ state: 'fresh' }).event('ADDED', a4).event('ADDED', b3).bookmark(4, true).close('gone');
    },
  },
  {
    title: 'an exact list is said to be gone while it must be kept',
    invariant: 'I8',
    write(s) {
      start(s);
      const list = s.recorder.nextList();
      const op = { do: 'list', selection: all, at: { at: 'exact', revision: 3 }, list, page: 0 } as const;
      s.recorder.call({ client: 'c', server: 's', start: s.time, op, reply: { is: 'refused', code: 410, reason: 'Expired' } });
    },
  },
  {
    title: 'a uid is used for two objects',
    invariant: 'I10',
    write(s) {
      const { a4 } = start(s);
      s.create('c', 5, { but: { uid: a4.uid } });
    },
  },
  {
    title: 'a uid is used again after the deletion of its object',
    invariant: 'I10',
    write(s) {
      const { b3 } = start(s);
      s.remove('b', 5);
      s.create('b', 6, { but: { uid: b3.uid } });
    },
  },
  {
    title: 'an update changes the uid',
    invariant: 'I10',
    write(s) {
      start(s);
      s.replace('a', 5, { but: { uid: 'changed' } });
    },
  },
  {
    title: 'an update changes the creationTimestamp',
    invariant: 'I10',
    write(s) {
      start(s);
      s.replace('a', 5, { but: { created: '2031-01-01T00:00:00Z' } });
    },
  },
  {
    title: 'a write of the status raises the generation',
    invariant: 'I10',
    write(s) {
      const { a4 } = start(s);
      s.status('a', 5, { phase: 'Running' }, { but: { generation: (a4.generation ?? 0) + 1 } });
    },
  },
  {
    title: 'a change of the spec does not raise the generation',
    invariant: 'I10',
    write(s) {
      const { a4 } = start(s);
      s.patch('a', 5, { size: '2' }, { but: { generation: a4.generation ?? 0 } });
    },
  },
];
