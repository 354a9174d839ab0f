import type { StoreSpec } from './store-spec.ts';

/**
 * A process with one store and nothing else: opens it, writes so many entries, opens so many watches, says `ready 0`,
 * and stays. Without words it is a bare Node process that says the same.
 */
const [specText, entries = '0', watches = '0'] = process.argv.slice(2);

async function open(text: string): Promise<void> {
  const [{ prefixRange }, { openStore }] = await Promise.all([
    import('@keelson/core/storage-adapter'),
    import('./store-spec.ts'),
  ]);
  const store = await openStore(JSON.parse(text) as StoreSpec);
  const value = Buffer.alloc(1024, 120);
  for (let at = 0; at < Number(entries); at += 256) {
    const batch = Array.from({ length: Math.min(256, Number(entries) - at) }, (_, index) => `/m/${at + index}`);
    await Promise.all(batch.map((key) => store.write({ op: 'put', key, value: Buffer.from(value), expect: 0 })));
  }
  const after = await store.currentRevision();
  for (let count = 0; count < Number(watches); count += 1) {
    const stream = await store.watch(prefixRange('/m/'), { after });
    void (async () => {
      for await (const batch of stream) void batch;
    })().catch(() => {});
  }
  await store.get('/m/0');
  process.once('SIGTERM', () => void store.close().finally(() => process.exit()));
}

if (specText !== undefined) await open(specText);
// With --expose-gc: what is left is what is held.
for (let round = 0; round < 3; round += 1) {
  globalThis.gc?.();
  await new Promise((resolve) => setImmediate(resolve));
}
process.stdout.write('ready 0\n');
setInterval(() => {}, 60_000);
