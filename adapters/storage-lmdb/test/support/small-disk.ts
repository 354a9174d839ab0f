/*
 * Uses a store on a disk until it is full and beyond: node small-disk.js DIRECTORY
 * The directory is a file system of its own, of a few megabytes. Prints the results as one JSON object.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isStorageError } from '@keelson/core';
import { LmdbStore } from '../../src/index.ts';

const [disk = ''] = process.argv.slice(2);
const path = join(disk, 'store');
const everything = { start: '/', end: '0' };
const value = Buffer.alloc(2000, 'x');
const outcome = (error: unknown) => (isStorageError(error) ? `${error.code}: ${error.message}` : String(error));
const count = (outcomes: readonly string[]) => {
  const counts: Record<string, number> = {};
  for (const each of outcomes) counts[each] = (counts[each] ?? 0) + 1;
  return counts;
};

async function open(): Promise<LmdbStore> {
  const store = new LmdbStore({ path });
  await store.ready();
  return store;
}

async function create(store: LmdbStore, key: string): Promise<string> {
  return store.write({ op: 'put', key, value, expect: 0 }).then(({ ok }) => (ok ? 'ok' : 'refused'), outcome);
}

const keysOf = async (store: LmdbStore) => {
  const keys: { key: string; modRevision: number }[] = [];
  for await (const { entries } of store.list(everything)) keys.push(...entries);
  return keys;
};

let store = await open();
const filling: string[] = [];
for (let i = 0; i < 400 && !filling.some((each) => each.startsWith('Unavailable')); i++) {
  filling.push(...(await Promise.all(Array.from({ length: 50 }, (_, j) => create(store, `/k/${i}/${j}`)))));
}
const created = filling.filter((each) => each === 'ok').length;
// No space remains for other files either.
const ballast = join(disk, 'ballast');
let ballastBytes = 0;
try {
  for (;;) writeFileSync(ballast, Buffer.alloc(64 * 1024, 'b'), { flag: 'a' });
} catch {
  ballastBytes = 1;
}
await store.close();

store = await open();
const readable = (await keysOf(store)).length;
const createdWhileFull = await create(store, '/new');
const marked = await Promise.all(
  (await keysOf(store)).slice(0, 3).map(async ({ key, modRevision }) => {
    const longer = Buffer.concat([value, Buffer.alloc(100, 'm')]);
    return store.write({ op: 'put', key, value: longer, expect: modRevision }).then(({ ok }) => String(ok), outcome);
  }),
);
const half = (await keysOf(store)).slice(0, Math.floor(created / 2));
const deleted: string[] = [];
for (const { key, modRevision } of half) {
  deleted.push(await store.write({ op: 'delete', key, expect: modRevision }).then(({ ok }) => String(ok), outcome));
}
await store.close();
rmSync(ballast);
store = await open();
let resumed = '';
for (let i = 0; i < 100 && resumed !== 'ok'; i++) {
  resumed = await create(store, `/resumed/${i}`);
  if (resumed !== 'ok') await new Promise((resolve) => setTimeout(resolve, 100));
}
const left = (await keysOf(store)).length;
await store.close();
console.log(
  JSON.stringify({
    filling: count(filling),
    created,
    ballastBytes,
    readable,
    createdWhileFull,
    marked,
    deleted: count(deleted),
    resumed,
    left,
  }),
);
