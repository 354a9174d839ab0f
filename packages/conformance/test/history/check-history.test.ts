import test from 'ava';
import { checkHistory, describeVerdict } from '../../src/index.ts';
import { badHistories } from './support/bad-histories.ts';
import { all, keyOf, Script } from './support/script.ts';

const anyTraffic = { minWrites: 0, minEvents: 0 };
const unknown = { is: 'unknown', why: 'cut' } as const;

test('there are at least forty invalid histories, each with a unique title', (t) => {
  t.true(badHistories.length >= 40, `${badHistories.length}`);
  t.is(new Set(badHistories.map(({ title }) => title)).size, badHistories.length);
  t.log(`${badHistories.length} bad histories`);
});

for (const bad of badHistories) {
  test(`rejects: ${bad.title}`, (t) => {
    const script = new Script();
    bad.write(script);
    const result = checkHistory(script.history(bad.ledger !== false), anyTraffic);
    t.is(result.verdict, 'violations', describeVerdict(result));
    t.true(
      result.violations.some(({ invariant }) => invariant === bad.invariant),
      describeVerdict(result),
    );
    t.true(result.violations.every(({ involved, text }) => involved.length > 0 && text.length > 10));
  });
}

/** Everything that is allowed, in one history. */
function good(): Script {
  const s = new Script();
  const red = { kind: 'Part', labels: [{ key: 'colour', is: 'in', values: ['red'] }] } as const;
  const ledger = s.watch({ after: 0 }, { watch: 'live' });
  const a2 = s.create('a', 2, { labels: { colour: 'red' } });
  ledger.event('ADDED', a2);
  const b3 = s.create('b', 3, { labels: { colour: 'blue' }, reply: unknown });
  s.attempt({ do: 'create', key: keyOf('never'), token: 'n', labels: {}, values: { token: 'n' } }, unknown);
  s.attempt(
    { do: 'create', key: keyOf('a'), token: 'm', labels: {}, values: { token: 'm' } },
    { is: 'refused', code: 409, reason: '' },
  );
  ledger.event('ADDED', b3).bookmark(5);
  const a7 = s.replace('a', 7, { expect: 2, labels: { colour: 'blue' } });
  s.attempt({ do: 'delete', key: keyOf('a'), expect: 2 }, { is: 'refused', code: 409, reason: '' });
  s.get('a', a2, { at: 'any' });
  s.get('a', a7, { at: 7 });
  s.get('gone', undefined);
  s.list([[a7], [b3]], 7);
  s.list([[a2, b3]], 3, { exact: 3 });
  s.list([[a2, b3]], 5, { at: 'any' });
  s.list([], 7, { selection: red });
  s.watch({ after: 3 }, { selection: red })
    .event('DELETED', { ...a2, revision: 7 })
    .bookmark(8)
    .close('cut');
  s.watch({ after: 0 }, { watch: 'stuck', selection: red }).close('cut');
  // A read that runs beside two writes may show any of three states.
  const begun = s.time;
  const a9 = s.patch('a', 9, { one: '1' }, { start: begun + 1, end: begun + 90 });
  const a10 = s.status('a', 10, { phase: 'Up' }, { start: begun + 1, end: begun + 95 });
  for (const object of [a7, a9, a10]) s.get('a', object, { start: begun + 2, end: begun + 80 });
  s.remove('b', 11, { reply: unknown });
  s.watch({ state: 'fresh' }).event('ADDED', a10).bookmark(11, true).close();
  s.watch({ state: 'any' }, { watch: 'old' }).event('ADDED', a2).event('ADDED', b3).event('MODIFIED', a7).close();
  s.watch({ state: 'any' }, { watch: 'older' }).event('ADDED', a2).close('cut');
  ledger.event('MODIFIED', a7).close('cut');
  s.watch({ after: 7 }, { watch: 'live', resumed: true })
    .event('MODIFIED', a9)
    .event('MODIFIED', a10)
    .event('DELETED', { ...b3, revision: 11 })
    .close();
  s.recorder.finish('live', 11);
  const b12 = s.create('b', 12);
  s.list([[a10, b12]], 12);
  return s;
}

test('a history with every permitted operation is accepted', (t) => {
  const result = checkHistory(good().history(), anyTraffic);
  t.is(result.verdict, 'ok', describeVerdict(result));
  t.is(result.counts.settled, 2);
  t.is(result.counts.unknown, 3);
});

test('too little traffic is inconclusive, not passed', (t) => {
  const history = good().history();
  const result = checkHistory(history, { minWrites: 50, minEvents: 500 });
  t.is(result.verdict, 'inconclusive');
  t.is(result.reasons.length, 2);
});

test('a history without a watch from the first write to the last is inconclusive', (t) => {
  const s = new Script();
  const a2 = s.create('a', 2);
  s.create('b', 3);
  t.is(checkHistory(s.history(false), anyTraffic).verdict, 'inconclusive');
  s.watch({ after: 0 }).event('ADDED', a2).close('cut');
  const result = checkHistory(s.history(false), anyTraffic);
  t.deepEqual(
    [result.verdict, result.reasons],
    ['inconclusive', ['no watch of all Part from the first write to the last']],
  );
});

test('a history with dropped records is inconclusive', (t) => {
  const { records } = good().history();
  t.is(checkHistory({ records, truncated: true }, anyTraffic).verdict, 'inconclusive');
});

test('a fresh watch without events may have had any state until its end', (t) => {
  const s = new Script();
  s.create('a', 2);
  const quiet = s.watch({ state: 'fresh' }, { watch: 'quiet' });
  s.remove('a', 3);
  quiet.close('ended');
  const result = checkHistory(s.history(), anyTraffic);
  t.is(result.verdict, 'ok', describeVerdict(result));
});

test('released revisions may be gone, for watches, lists and pages', (t) => {
  const s = good();
  s.recorder.release(9);
  s.time += 1;
  s.watch({ after: 8 }, { watch: 'late' }).close('gone');
  s.watch({ state: 'any' }, { watch: 'state' }).close('gone');
  const list = s.recorder.nextList();
  const op = { do: 'list', selection: all, at: { at: 'exact', revision: 7 }, list, page: 0 } as const;
  s.recorder.call({
    client: 'c',
    server: 's',
    start: s.time,
    op,
    reply: { is: 'refused', code: 410, reason: 'Expired' },
  });
  const result = checkHistory(s.history(), anyTraffic);
  t.is(result.verdict, 'ok', describeVerdict(result));
  t.like(result.counts, { gone: 2, releases: 1 });
});

test('a revision that the retention does not cover may be gone', (t) => {
  const s = new Script();
  for (let revision = 2; revision < 200; revision++) s.create(`p${revision}`, revision);
  s.watch({ after: 20 }, { watch: 'old', selection: { ...all } }).close('gone');
  const history = s.history();
  t.is(checkHistory(history, { ...anyTraffic, retention: { minChanges: 100, minAgeMs: 0 } }).verdict, 'ok');
  t.is(checkHistory(history, { ...anyTraffic, retention: { minChanges: 1000, minAgeMs: 0 } }).verdict, 'violations');
  t.is(checkHistory(history, { ...anyTraffic, retention: { minChanges: 0, minAgeMs: 60_000 } }).verdict, 'violations');
});

test('an initial state in key order may start with an object that was also the first change of its selection', (t) => {
  const s = new Script();
  const ledger = s.watch({ after: 0 }, { watch: 'live' });
  const a2 = s.create('a', 2);
  const c3 = s.create('c', 3);
  const b4 = s.create('b', 4);
  for (const object of [a2, c3, b4]) ledger.event('ADDED', object);
  const b5 = s.replace('b', 5, { expect: 4 });
  ledger.event('MODIFIED', b5);
  // Empty at 1 and then a@2 would be one reading; it ends in a contradiction at b@4, before c@3.
  s.watch({ state: 'any' }).event('ADDED', a2).event('ADDED', b4).event('ADDED', c3).event('MODIFIED', b5).close('cut');
  const result = checkHistory(s.history(), anyTraffic);
  t.is(result.verdict, 'ok', describeVerdict(result));
});
