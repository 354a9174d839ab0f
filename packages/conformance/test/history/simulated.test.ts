import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import {
  checkHistory,
  describeVerdict,
  type History,
  type HistoryRecord,
  HistoryRecorder,
  loadHistory,
  Random,
  saveHistory,
} from '../../src/index.ts';
import { simulate } from './support/simulated-plane.ts';

const seed = Number(process.env['KEELSON_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const options = { minWrites: 0, minEvents: 0 };

test('histories of a correct plane are accepted, in any order of operations', (t) => {
  t.timeout(60_000);
  t.log(`KEELSON_SEED=${seed}`);
  let versions = 0;
  let settled = 0;
  for (let run = 0; run < 60; run++) {
    const result = checkHistory(simulate(seed + run, 1500), options);
    t.is(result.verdict, 'ok', `KEELSON_SEED=${seed + run}\n${describeVerdict(result)}`);
    versions += result.counts.versions;
    settled += result.counts.settled;
  }
  t.true(versions > 2000 && settled > 20, `${versions} versions, ${settled} settled`);
});

type Twist = (records: HistoryRecord[], random: Random) => boolean;

function pickIndex(
  records: readonly HistoryRecord[],
  random: Random,
  fits: (record: HistoryRecord, index: number) => boolean,
): number {
  const indices = records.flatMap((record, index) => (fits(record, index) ? [index] : []));
  return indices.length === 0 ? -1 : random.pick(indices);
}

const isWitness = (records: readonly HistoryRecord[], session: number) =>
  records.some(
    (record) => record.t === 'open' && record.session === session && (record.watch === 'w0' || record.watch === 'w1'),
  );

/** Small defects of a valid history. Each returns false when it does not apply to this history. */
const defects: Readonly<Record<string, Twist>> = {
  'a missing event': (records, random) => {
    const index = pickIndex(records, random, (record) => record.t === 'event' && isWitness(records, record.session));
    if (index >= 0) records.splice(index, 1);
    return index >= 0;
  },
  'a duplicate event': (records, random) => {
    const index = pickIndex(records, random, (record) => record.t === 'event' && isWitness(records, record.session));
    const record = records[index];
    if (record !== undefined) records.splice(index, 0, record);
    return record !== undefined;
  },
  'an event of another type': (records, random) => {
    const index = pickIndex(
      records,
      random,
      (record) => record.t === 'event' && record.type === 'MODIFIED' && isWitness(records, record.session),
    );
    const record = records[index];
    if (record?.t === 'event') records[index] = { ...record, type: 'ADDED' };
    return record !== undefined;
  },
  'a list without its first item': (records, random) => {
    const index = pickIndex(
      records,
      random,
      (r) => r.t === 'call' && r.reply.is === 'ok' && r.reply.more === false && (r.reply.items?.length ?? 0) > 0,
    );
    const record = records[index];
    if (record?.t !== 'call' || record.reply.is !== 'ok') return false;
    records[index] = { ...record, reply: { ...record.reply, items: (record.reply.items ?? []).slice(1) } };
    return true;
  },
  'a write of unknown outcome is recorded as rejected': (records, random) => {
    const history = checkHistory({ records, truncated: false }, options);
    if (history.counts.settled === 0) return false;
    for (const [index, record] of records.entries()) {
      if (record.t === 'call' && record.reply.is === 'unknown') {
        records[index] = { ...record, reply: { is: 'refused', code: 429, reason: '' } };
      }
    }
    void random;
    return true;
  },
  'a write was acknowledged with a revision that it does not have': (records, random) => {
    const writes = (r: HistoryRecord) => r.t === 'call' && r.reply.is === 'ok' && r.op.do === 'patch';
    const index = pickIndex(records, random, writes);
    const other = pickIndex(records, random, (r, i) => i !== index && writes(r));
    const [a, b] = [records[index], records[other]];
    if (a?.t !== 'call' || b?.t !== 'call') return false;
    records[index] = { ...a, reply: b.reply };
    return true;
  },
  'a successful write that no client requested': (records, random) => {
    const index = pickIndex(records, random, (r) => r.t === 'call' && r.reply.is === 'ok' && r.op.do === 'create');
    if (index >= 0) records.splice(index, 1);
    return index >= 0;
  },
  'a bookmark ahead of later events': (records, random) => {
    const index = pickIndex(records, random, (r) => r.t === 'bookmark' && isWitness(records, r.session));
    const record = records[index];
    if (record?.t !== 'bookmark') return false;
    const later = records.slice(index).some((r) => r.t === 'event' && r.session === record.session);
    if (later) records[index] = { ...record, revision: record.revision + 100_000 };
    return later;
  },
  'an event that is observed a second too early': (records, random) => {
    const index = pickIndex(records, random, (r) => r.t === 'event' && isWitness(records, r.session) && r.at > 1000);
    const record = records[index];
    if (record?.t === 'event') records[index] = { ...record, at: record.at - 1000 };
    return record !== undefined && lastChange(records, record) > 0;
  },
};

/** The witness saw something that was written less than a second before: moving it back is certainly a defect. */
function lastChange(records: readonly HistoryRecord[], record: HistoryRecord): number {
  if (record.t !== 'event') return 0;
  const write = records.find(
    (r) => r.t === 'call' && r.reply.is === 'ok' && r.reply.object === record.object && r.op.do !== 'get',
  );
  return write?.t === 'call' && write.start > record.at - 1000 ? 1 : 0;
}

for (const [title, insert] of Object.entries(defects)) {
  test(`an error in a long valid history is detected: ${title}`, (t) => {
    t.timeout(60_000);
    t.log(`KEELSON_SEED=${seed}`);
    let changed = 0;
    for (let run = 0; run < 12; run++) {
      const history: History = simulate(seed + run, 1200);
      const records = [...history.records];
      if (!insert(records, new Random(seed + run))) continue;
      changed += 1;
      const result = checkHistory({ records, truncated: false }, options);
      t.is(result.verdict, 'violations', `KEELSON_SEED=${seed + run}\n${describeVerdict(result)}`);
    }
    t.true(changed > 0, 'the defect applied to no history');
  });
}

test('a saved history is read back unchanged, and a line truncated by a crash is skipped', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-history-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const history = simulate(seed, 300);
  const path = join(folder, 'history.jsonl');
  await saveHistory(path, history);
  const loaded = await loadHistory(path);
  t.deepEqual(loaded.records, [...history.records]);
  t.deepEqual(checkHistory(loaded, options), checkHistory(history, options));
  await appendFile(path, '{"t":"call","id":');
  t.deepEqual((await loadHistory(path)).records, [...history.records]);
  await appendFile(path, '\n{"t":"mark","at":1,"text":"later"}\n');
  await t.throwsAsync(loadHistory(path), { message: /not a record/ });
});

test('a recorder keeps at most its maximum of records and reports the truncation', (t) => {
  let lines = 0;
  const recorder = new HistoryRecorder({ maxRecords: 3, onRecord: () => (lines += 1) });
  for (let i = 0; i < 5; i++) recorder.mark(`m${i}`);
  t.is(recorder.records.length, 3);
  t.is(lines, 3);
  t.true(recorder.truncated);
});

test('a history of 200 000 records is checked in seconds', (t) => {
  t.timeout(60_000);
  const s = new HistoryRecorder({ now: () => time });
  let time = 0;
  const sessions = Array.from({ length: 16 }, (_, i) =>
    s.open({ watch: `w${i}`, server: 's', selection: { kind: 'Part' }, from: { after: 0 }, resumed: false }),
  );
  for (let revision = 1; revision <= 12_000; revision++) {
    time += 1;
    const token = `t${revision}`;
    const key = `Part/ns/o${String(revision % 100).padStart(3, '0')}`;
    const values = { token };
    const round = Math.ceil(revision / 100);
    const object = {
      key,
      uid: key,
      revision,
      created: 'c',
      generation: round,
      labels: {},
      values,
      status: {},
      digest: token,
    };
    const start = time;
    time += 1;
    const op =
      revision <= 100
        ? ({ do: 'create', key, token, labels: {}, values } as const)
        : ({ do: 'patch', key, token, values } as const);
    s.call({ client: 'c', server: 's', start, op, reply: { is: 'ok', object: s.object(object) } });
    for (const session of sessions) s.event(session, revision <= 100 ? 'ADDED' : 'MODIFIED', object);
  }
  const began = performance.now();
  const result = checkHistory(s);
  const took = performance.now() - began;
  t.log(`${s.records.length} records in ${took.toFixed(0)} ms`);
  t.is(result.verdict, 'ok', describeVerdict(result));
  t.true(took < 10_000);
});
