import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Random } from '@keelson/conformance';
import type { Change, Store } from '@keelson/core/storage-adapter';
import test, { type ExecutionContext } from 'ava';
import { LmdbStore } from '../src/index.ts';
import { temporaryDirectory } from './support/lmdb-harness.ts';

const rounds = process.env['KEELSON_TEST_FULL'] === '1' ? 56 : 9;
const everything = { start: '/', end: '0' };
const seed = Number(process.env['KEELSON_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

interface Acknowledged {
  readonly revision: number;
  readonly type: string;
  readonly key: string;
  /** `-` for a delete. */
  readonly value: string;
}

/** Runs a writer until it has acknowledged so many writes, kills it, and returns the acknowledged writes. */
async function killed(
  child: ChildProcess,
  after: number,
  delayMs: number,
): Promise<{ head: number; acknowledged: Acknowledged[] }> {
  const exit = once(child, 'exit');
  const acknowledged: Acknowledged[] = [];
  let head = -1;
  let due = false;
  if (child.stdout === null) throw new Error('the writer has no output');
  for await (const line of createInterface({ input: child.stdout })) {
    const [first = '', type = '', key = '', value = ''] = line.split(' ');
    if (first === 'ready') head = Number(type);
    // The kill may truncate the last line: the write was acknowledged, but not printed completely.
    else if (value !== '' && (type === 'delete' || value.includes('.'))) {
      acknowledged.push({ revision: Number(first), type, key, value });
    }
    if (head >= 0 && acknowledged.length >= after && !due) {
      due = true;
      setTimeout(() => child.kill('SIGKILL'), delayMs);
    }
  }
  const [, signal] = (await exit) as [number | null, string | null];
  if (signal !== 'SIGKILL') throw new Error(`the writer ended by itself: ${signal}`);
  return { head, acknowledged };
}

async function changesAfter(store: Store, after: number, head: number): Promise<Change[]> {
  const changes: Change[] = [];
  if (after >= head) return changes;
  for await (const batch of await store.watch(everything, { after, prevValue: true })) {
    changes.push(...batch.changes);
    if (batch.frontier >= head) break;
  }
  return changes;
}

const text = (bytes: Uint8Array | undefined) => (bytes === undefined ? '-' : Buffer.from(bytes).toString());

const byKey = (a: readonly [string, unknown], b: readonly [string, unknown]) => (a[0] < b[0] ? -1 : 1);

/** The state of the store, from the events of its watch after each kill. */
class Ledger {
  readonly state = new Map<string, { value: string; createRevision: number; modRevision: number }>();
  readonly history = new Map<number, string>();
  head = 1;

  /** Compares the changes with the known ones, and adds new ones. */
  take(t: ExecutionContext, changes: readonly Change[], from: number): void {
    let expected = from;
    for (const { type, revision, key, entry, prev } of changes) {
      if (revision !== ++expected) t.fail(`revision ${revision} where ${expected} was due`);
      const line = `${type} ${key} ${text(entry?.value)}`;
      if (revision <= this.head) {
        if (this.history.get(revision) !== line)
          t.fail(`revision ${revision} was ${this.history.get(revision)}, now ${line}`);
        continue;
      }
      this.history.set(revision, line);
      const before = this.state.get(key);
      t.deepEqual(
        prev && { value: text(prev.value), createRevision: prev.createRevision, modRevision: prev.modRevision },
        before,
      );
      t.is(type, entry === undefined ? 'delete' : before === undefined ? 'create' : 'update');
      if (entry === undefined) this.state.delete(key);
      else {
        const createRevision = before?.createRevision ?? revision;
        t.is(entry.createRevision, createRevision);
        this.state.set(key, { value: text(entry.value), createRevision, modRevision: revision });
      }
    }
    this.head = Math.max(this.head, expected);
  }
}

test(`kill -9 at ${rounds} random points loses no acknowledged write and no change, and repeats no revision`, async (t) => {
  t.timeout(180_000);
  t.log(`KEELSON_SEED=${seed}`);
  const random = new Random(seed);
  const { path: root, remove } = temporaryDirectory();
  t.teardown(remove);
  const path = join(root, 'data');
  const script = fileURLToPath(new URL('./support/crash-writer.js', import.meta.url));
  const ledger = new Ledger();
  let acknowledgements = 0;
  let unacknowledged = 0;

  for (let round = 0; round < rounds; round++) {
    // Every third round compacts all the time.
    const minChanges = round % 3 === 2 ? 0 : 1_000_000;
    const args = [script, path, String(round), String(random.below(2 ** 31)), String(minChanges)];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    t.teardown(() => child.kill('SIGKILL'));
    const { head: headAtStart, acknowledged } = await killed(child, random.below(400), random.below(8));
    t.is(headAtStart, ledger.head, 'the store starts at the revision at which the previous one ended');

    const store = new LmdbStore({ path, history: { minChanges: 1_000_000 } });
    await store.ready();
    const head = await store.currentRevision();
    const bound = await store.compactedRevision();
    const from = Math.max(bound, minChanges === 0 ? ledger.head : 0, 1);
    if (bound > ledger.head) t.is(minChanges, 0, 'there was no compaction');
    const known = ledger.head;
    if (bound <= known) {
      // From the oldest available revision, or from the last known one: without a gap.
      ledger.take(t, await changesAfter(store, from, head), from);
      t.is(ledger.head, head);
      for (const { revision, type, key, value } of acknowledged) {
        if (ledger.history.get(revision) !== `${type} ${key} ${value}`) {
          t.fail(`acknowledged ${revision} ${type} ${key}, found ${ledger.history.get(revision)}`);
        }
      }
      unacknowledged += head - known - acknowledged.length;
    } else {
      // Compaction has passed the known revisions: begin again from the state, against which acknowledged writes are
      // checked.
      const touched = new Map(acknowledged.sort((a, b) => a.revision - b.revision).map((write) => [write.key, write]));
      ledger.state.clear();
      for await (const chunk of store.list(everything)) {
        for (const { key, value, createRevision, modRevision } of chunk.entries) {
          ledger.state.set(key, { value: text(value), createRevision, modRevision });
        }
      }
      for (const { key, revision, value } of touched.values()) {
        const now = ledger.state.get(key);
        if (now?.modRevision === revision) t.is(now.value, value);
        else t.true(now === undefined || now.modRevision > revision, `${key} is older than its acknowledged write`);
      }
      ledger.head = bound;
      const tail = await changesAfter(store, bound, head);
      t.deepEqual(
        tail.map(({ revision }) => revision),
        tail.map((_, i) => bound + 1 + i),
      );
      for (const change of tail)
        ledger.history.set(change.revision, `${change.type} ${change.key} ${text(change.entry?.value)}`);
      t.is(bound + tail.length, head);
      ledger.head = head;
    }
    acknowledgements += acknowledged.length;
    t.true(
      acknowledged.every(({ revision }) => revision <= head),
      'an acknowledged revision is beyond the head',
    );

    const listed = new Map<string, unknown>();
    for await (const chunk of store.list(everything)) {
      for (const { key, value, createRevision, modRevision } of chunk.entries) {
        listed.set(key, { value: text(value), createRevision, modRevision });
      }
    }
    t.deepEqual([...listed].sort(byKey), [...ledger.state].sort(byKey), `state after round ${round}`);
    await store.close();
  }
  t.log(
    `${rounds} kills, ${acknowledgements} acknowledged writes, ${unacknowledged} more on disk, head ${ledger.head}`,
  );
  t.true(acknowledgements > rounds * 20, 'too few writes for a result');
});
