/*
 * Writes until a limit on the size of files is reached, then raises the limit: node disk-full.js PATH
 * Prints the results as one JSON object.
 */
import { execFileSync } from 'node:child_process';
import { isStorageError } from '@keelson/core';
import { LmdbStore } from '../../src/index.ts';

const [path = ''] = process.argv.slice(2);
const limiter = 'prlimit';
const limit = (soft: string) => execFileSync(limiter, ['--pid', String(process.pid), `--fsize=${soft}:`]);
const value = Buffer.alloc(2000, 'x');
const everything = { start: '/', end: '0' };
const outcomes: Record<string, number> = {};

const store = new LmdbStore({ path });
await store.ready();
const acknowledged = new Map<string, number>();

async function write(key: string): Promise<void> {
  let outcome = 'ok';
  try {
    const result = await store.write({ op: 'put', key, value, expect: 0 });
    if (result.ok) acknowledged.set(key, result.revision);
    else outcome = 'refused';
  } catch (error) {
    outcome = isStorageError(error) ? error.code : String(error);
  }
  outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
}

limit(String(4 * 1024 * 1024));
for (let i = 0; i < 80; i++) await Promise.all(Array.from({ length: 50 }, (_, j) => write(`/full/${i}/${j}`)));
const whileFull = { ...outcomes };
const head = await store.currentRevision();
const readable = (await store.count(everything)).count;
const compaction = await store.compact(head).then(
  () => 'ok',
  (error: unknown) => (isStorageError(error) ? error.code : String(error)),
);

limit('unlimited');
for (const key of Object.keys(outcomes)) delete outcomes[key];
for (let i = 0; i < 10; i++) await Promise.all(Array.from({ length: 50 }, (_, j) => write(`/again/${i}/${j}`)));
const afterwards = { ...outcomes };
const bound = await store.compactedRevision();
let watched = 0;
for await (const batch of await store.watch(everything, { after: Math.max(bound, 1) })) {
  watched += batch.changes.length;
  if (batch.frontier >= (await store.currentRevision())) break;
}
await store.close();

const reopened = new LmdbStore({ path });
await reopened.ready();
let lost = 0;
for (const [key, revision] of acknowledged) if ((await reopened.get(key)).entry?.modRevision !== revision) lost++;
const end = await reopened.currentRevision();
const total = (await reopened.count(everything)).count;
await reopened.close();
console.log(
  JSON.stringify({
    whileFull,
    afterwards,
    head,
    readable,
    compaction,
    watched,
    bound,
    lost,
    end,
    total,
    acknowledged: acknowledged.size,
  }),
);
