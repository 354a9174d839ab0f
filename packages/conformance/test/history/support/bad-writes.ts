import { type BadHistory, gone, start } from './bad-history.ts';
import { keyOf } from './script.ts';

const refused = (code: number) => ({ is: 'refused', code, reason: 'Conflict' }) as const;
const unknown = { is: 'unknown', why: 'cut' } as const;

/** Writes that contradict each other, their conditions, or what was seen of them. */
export const badWrites: readonly BadHistory[] = [
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
    title: 'an acknowledged update was lost on restart: the next one succeeds on the condition of the previous state',
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
    title: 'a revision is assigned twice, to different keys',
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
    title: 'a write is visible before it began',
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
    title: 'two writes succeed on one condition',
    invariant: 'I4',
    write(s) {
      start(s);
      s.replace('a', 5, { expect: 4, start: s.time + 1, end: s.time + 9 });
      s.replace('a', 6, { expect: 4, start: s.time - 7, end: s.time + 9 });
    },
  },
  {
    title: 'two creations of one name succeed',
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
    title: 'an update of a deleted object succeeds',
    invariant: 'I4',
    write(s) {
      start(s);
      s.remove('b', 5);
      s.replace('b', 6);
    },
  },
  {
    title: 'a condition is rejected although the named revision was current all the time',
    invariant: 'I4',
    write(s) {
      start(s);
      s.attempt({ do: 'delete', key: keyOf('a'), expect: 4 }, refused(409));
    },
  },
  {
    title: 'a creation is rejected although the name was free all the time',
    invariant: 'I4',
    write(s) {
      start(s);
      s.attempt({ do: 'create', key: keyOf('free'), token: 'x', labels: {}, values: { token: 'x' } }, refused(409));
    },
  },
  {
    title: 'an update is NotFound although the object existed all the time',
    invariant: 'I4',
    write(s) {
      start(s);
      s.attempt({ do: 'patch', key: keyOf('a'), token: 'x', values: { token: 'x' } }, refused(404));
    },
  },
  {
    title: 'a rejected write takes effect',
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
    title: 'a write that no client requested',
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
    title: 'a deletion that no client requested',
    invariant: 'I2',
    write(s) {
      const { b3 } = start(s);
      s.log.push({ type: 'DELETED', object: gone(b3, 5) });
    },
  },
  {
    title: 'a deleted object reappears',
    invariant: 'I2',
    write(s) {
      const { b3 } = start(s);
      s.remove('b', 5);
      s.log.push({ type: 'ADDED', object: { ...b3, revision: 6 } });
    },
  },
  {
    title: 'a patch drops a field that another writer set',
    invariant: 'I1',
    write(s) {
      start(s);
      s.patch('a', 5, { one: '1' });
      s.patch('a', 6, { two: '2' }, { but: { values: { token: 'token-5', two: '2' } } });
    },
  },
  {
    title: 'an update results in other labels than requested',
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
