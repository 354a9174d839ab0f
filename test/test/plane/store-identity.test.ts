import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import test from 'ava';
import { removeDirectory, runKeelson, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';

test('a replaced store is rejected with both ids and the option to accept it, and accepted with that option', async (t) => {
  const folder = await temporaryDirectory();
  t.teardown(() => removeDirectory(folder));
  const data = `${folder}/data`;
  const serve = ['serve', '--insecure', '--listen', '127.0.0.1:0', '--data', data];
  const first = await startKeelson(data, ['--insecure']);
  t.is(await first.stop(), 0);
  const record = JSON.parse(await readFile(`${data}/stores.json`, 'utf8')) as {
    stores: Record<string, { storeId: string }>;
  };
  const { storeId } = record.stores['default/lmdb'] ?? {};

  await rename(`${data}/store`, `${folder}/away`);
  for (let i = 0; i < 2; i += 1) {
    const { code, stdout, stderr } = await runKeelson(serve);
    t.is(code, 1);
    t.is(stdout, '');
    const message = stderr.trim().split('\n').at(-1) ?? '';
    t.regex(
      message,
      /^keelson: the lmdb store named default is not the one used before: this one is \S+, \S+stores\.json knows \S+;/,
    );
    t.true(message.includes(storeId ?? '?') && message.includes('--accept-new-store'), message);
  }

  await rm(`${data}/store`, { recursive: true });
  await rename(`${folder}/away`, `${data}/store`);
  const again = await startKeelson(data, ['--insecure']);
  t.is(await again.stop(), 0);

  await rename(`${data}/store`, `${folder}/away`);
  const accepted = await startKeelson(data, ['--insecure', '--accept-new-store']);
  t.is(await accepted.stop(), 0);
  t.regex(accepted.output().stderr, /a new store was accepted/);
  const later = await startKeelson(data, ['--insecure']);
  t.is(await later.stop(), 0);
});

test('a config file routes kinds to other stores, and its errors are reported in one sentence', async (t) => {
  const folder = await temporaryDirectory();
  t.teardown(() => removeDirectory(folder));
  const file = `${folder}/keelson.yaml`;
  await writeFile(
    file,
    `data: ./data
storage:
  default: lmdb:./main
  routes:
    - group: ""
      resources: [events]
      storage: { url: "memory:", reads: any, history: { minChanges: 100, minAge: 1m } }
    - { group: apps, storage: { adapter: lmdb, path: ./apps } }
history: { minAge: 10m }
`,
  );
  const server = await startKeelson(`${folder}/data`, ['--insecure', '--config', file]);
  const ready = await (await fetch(`${server.url}/readyz?verbose`)).text();
  t.is(await server.stop(), 0);
  t.regex(ready, /storage ok\n\[\+\]storage-events ok\n\[\+\]storage-apps ok/);
  const known = await readFile(`${folder}/data/stores.json`, 'utf8');
  t.deepEqual(Object.keys((JSON.parse(known) as { stores: object }).stores).sort(), ['apps/lmdb', 'default/lmdb']);

  await writeFile(
    file,
    'storage:\n  default: "memory:"\n  routes: [{ group: "", resources: [event], storage: "lmdb:x" }]\n',
  );
  const { code, stderr } = await runKeelson(['serve', '--insecure', '--config', file, '--data', `${folder}/data`]);
  t.is(code, 2);
  t.regex(stderr, /^keelson: .*routes\[0\]: the core group has no resource event; did you mean events\?\n$/);
});
