/*
 * Writes to a store and prints each write after its acknowledgement, until it is killed:
 *   node crash-writer.js PATH ROUND SEED MIN_CHANGES
 * Lines: `ready HEAD`, then `REVISION TYPE KEY VALUE`.
 */
import { writeSync } from 'node:fs';
import { Random } from '@keelson/conformance';
import { LmdbStore } from '../../src/index.ts';

const [path = '', round = '', seed = '', minChanges = ''] = process.argv.slice(2);
const history = { minChanges: Number(minChanges), minAgeMs: 0 };
const store = new LmdbStore({ path, history });
await store.ready();
writeSync(1, `ready ${await store.currentRevision()}\n`);

async function work(worker: number): Promise<never> {
  const random = new Random(Number(seed) * 31 + worker);
  for (let i = 0; ; i++) {
    // A worker has its own keys, and one key that all workers write.
    const key = random.chance(0.1) ? '/shared' : `/w${worker}/${random.below(20)}`;
    const { entry } = await store.get(key);
    const expect = entry?.modRevision ?? 0;
    if (entry !== undefined && random.chance(0.3)) {
      const result = await store.write({ op: 'delete', key, expect });
      if (result.ok) writeSync(1, `${result.revision} delete ${key} -\n`);
      continue;
    }
    const value = `${round}.${worker}.${i}.${'v'.repeat(random.below(300))}`;
    const result = await store.write({ op: 'put', key, value: Buffer.from(value), expect });
    if (result.ok) writeSync(1, `${result.revision} ${expect === 0 ? 'create' : 'update'} ${key} ${value}\n`);
  }
}

async function compactNowAndThen(): Promise<never> {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (history.minChanges > 0) continue;
    await store.compact(Math.max(1, (await store.currentRevision()) - 50));
  }
}

await Promise.all([...Array.from({ length: 12 }, (_, worker) => work(worker)), compactNowAndThen()]);
