import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigMap } from '@keelson/kinds';
import anyTest, { type TestFn } from 'ava';
import { createControlPlane } from 'keelson';

const test = anyTest as TestFn<{ folder: string }>;
const adapter = fileURLToPath(new URL('../src/own-adapter.js', import.meta.url));

test.beforeEach(async (t) => {
  t.context.folder = await mkdtemp(join(tmpdir(), 'own-adapter-'));
});

test.afterEach.always((t) => rm(t.context.folder, { recursive: true, force: true }));

test('a control plane on the adapter keeps its objects across a restart and a truncated last line', async (t) => {
  const path = join(t.context.folder, 'store.jsonl');
  const storage = { adapter, path, history: { minChanges: 10, minAge: '1m' } };
  const first = await createControlPlane({ storage });
  const made = await first
    .client(ConfigMap)
    .namespace('default')
    .create({ metadata: { name: 'kept' }, data: { a: '1' } });
  await first.close();
  await appendFile(path, '{"r":99,"k":"/core/configmaps/default/torn","c":99,"v":"');
  const second = await createControlPlane({ storage });
  t.teardown(() => second.close());
  const maps = await second.client(ConfigMap).namespace('default').list();
  t.deepEqual(maps.items, [made]);
});

test('the file consists of readable lines', async (t) => {
  const path = join(t.context.folder, 'store.jsonl');
  const plane = await createControlPlane({ storage: { adapter, path } });
  await plane
    .client(ConfigMap)
    .namespace('default')
    .create({ metadata: { name: 'seen' } });
  await plane.close();
  const lines = (await readFile(path, 'utf8')).trim().split('\n');
  t.regex(lines[0] ?? '', /^\{"storeId":"[0-9a-f-]{36}","epoch":1,/);
  const line = lines
    .map((text) => JSON.parse(text) as { k?: string; v?: string })
    .find(({ k }) => k?.endsWith('/seen'));
  t.regex(
    Buffer.from(line?.v ?? '', 'base64').toString(),
    /^\{"kind":"ConfigMap","apiVersion":"v1","metadata":\{"name":"seen"/,
  );
});

test('invalid options are reported by name', async (t) => {
  await t.throwsAsync(createControlPlane({ storage: { adapter } }), { message: /path: Required value/ });
  await t.throwsAsync(createControlPlane({ storage: { adapter, path: 'x', shards: 1 } }), {
    message: /lines has no option shards/,
  });
});

test('a file that is no store is left unchanged', async (t) => {
  const path = join(t.context.folder, 'notes.txt');
  await writeFile(path, 'dear diary\n');
  await t.throwsAsync(createControlPlane({ storage: { adapter, path } }));
  t.is(await readFile(path, 'utf8'), 'dear diary\n');
});
