// Measures the adapter of the example own-adapter beside memory and LMDB, each served by a server of its own.
//
//   node main.js [MILLISECONDS PER ROUND]
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runBench } from '@keelson/bench';

const keelson = fileURLToPath(new URL('../bundle/keelson.js', import.meta.resolve('keelson')));
const folder = await mkdtemp(join(tmpdir(), 'bench-adapters-'));
const ownAdapter = {
  adapter: fileURLToPath(import.meta.resolve('@keelson-examples/own-adapter')),
  path: join(folder, 'store.jsonl'),
};

const { results } = await runBench(
  {
    storages: ['memory:', `lmdb:${folder}/lmdb`, JSON.stringify(ownAdapter)],
    scenarios: ['create', 'get'],
    quick: true,
    roundMs: Number(process.argv[2] ?? 1000),
  },
  { serve: [process.execPath, keelson] },
);
for (const { scenario, subject, perSecond, failed } of results)
  console.log(`${scenario} on ${subject}: ${failed ?? `${Math.round(perSecond.median)}/s`}`);
await rm(folder, { recursive: true, force: true });
