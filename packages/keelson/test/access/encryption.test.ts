import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isStatusError } from '@keelson/core';
import { systemClock } from '@keelson/core/runtime';
import { ConfigMap, Secret } from '@keelson/kinds';
import test, { type ExecutionContext } from 'ava';
import { main } from '../../src/cli/main.ts';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';

const canary = 'canary-9134-value';
const data = { key: Buffer.from(canary).toString('base64') };
const secretOf = (byte: number) => Buffer.alloc(32, byte).toString('base64');
const config = (keys: string, identity = false) =>
  'apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n' +
  `  providers:\n  - aesgcm: {keys: [${keys}]}\n${identity ? '  - identity: {}\n' : ''}`;
const k1 = `{name: k1, secret: ${secretOf(1)}}`;
const k2 = `{name: k2, secret: ${secretOf(2)}}`;
/** Changed files are noticed at once. */
const clock = {
  ...systemClock,
  after: (ms: number, callback: () => void) => systemClock.after(ms === 10_000 ? 20 : ms, callback),
};

async function started(t: ExecutionContext) {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-encryption-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const configFile = join(folder, 'encryption.yaml');
  const storage = `lmdb:${join(folder, 'store')}`;
  const start = async (withConfig = true) => {
    const plane = await createControlPlane({
      storage,
      clock,
      controllers: false,
      ...(withConfig ? { encryptionConfigFile: configFile } : {}),
    });
    t.teardown(() => plane.close());
    return plane;
  };
  const run = async (...words: string[]) => {
    let printed = '';
    const print = (text: string) => {
      printed += text;
    };
    const code = await main(words, { env: {}, stdout: print, stderr: print, terminated: new Promise<void>(() => {}) });
    return { code, printed };
  };
  return { folder, configFile, storage, start, run };
}

const secret = (name: string) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'default' }, data });

test('Secrets are unreadable in the files of the store; one with an unknown key is 500, all others work', async (t) => {
  const { folder, configFile, storage, start, run } = await started(t);
  await writeFile(configFile, config(k1), { mode: 0o600 });
  const plane = await start();
  for (const name of ['a', 'b']) await plane.client(Secret).namespace('default').create(secret(name));
  await plane
    .client(Secret)
    .namespace('default')
    .patch('a', 'merge', { metadata: { labels: { x: 'y' } } });
  await plane
    .client(ConfigMap)
    .namespace('default')
    .create({ ...secret('plain'), kind: 'ConfigMap', data: { readable: 'on-disk' } });
  t.deepEqual((await plane.client(Secret).namespace('default').get('a')).data, data);
  await plane.close();
  const file = await readFile(join(folder, 'store', 'data.mdb'));
  t.true(file.includes('on-disk'), 'the file contains what is not encrypted');
  for (const text of [canary, data.key]) t.false(file.includes(text), text);

  t.like(await run('verify', '--storage', storage, '--encryption-provider-config', configFile), { code: 0 });
  const unchecked = await run('verify', '--storage', storage);
  t.regex(unchecked.printed, /2 objects are encrypted, and their content was not checked/);

  await writeFile(configFile, config(k2));
  const other = await start();
  const messageOf = async (name: string, from = other) => {
    const error: unknown = await from
      .client(Secret)
      .namespace('default')
      .get(name)
      .catch((thrown: unknown) => thrown);
    return isStatusError(error) ? `${error.code} ${error.message}` : 'no error';
  };
  t.regex(
    await messageOf('a'),
    /^500 .*\/core\/secrets\/default\/a is encrypted with the key "k1", which --encryption-provider-config does not contain/,
  );
  await other.client(Secret).namespace('default').create(secret('c'));
  t.is(await messageOf('c'), 'no error');
  const damaged = await run('verify', '--storage', storage, '--encryption-provider-config', configFile);
  t.is(damaged.code, 1, 'the store is in use');

  await writeFile(configFile, config(`${k2}, ${k1}`));
  const until = Date.now() + 30_000;
  while ((await messageOf('a')) !== 'no error' && Date.now() < until) await new Promise(setImmediate);
  t.deepEqual((await other.client(Secret).namespace('default').get('a')).data, data, 'without a restart');
  await other.close();

  const without = await start(false);
  t.regex(
    await messageOf('b', without),
    /is encrypted with the key "k1", and the server has no --encryption-provider-config/,
  );
});

test('a key is rotated under load without errors, while the server runs', async (t) => {
  const { folder, configFile, start, run } = await started(t);
  await writeFile(configFile, config(k1), { mode: 0o600 });
  const plane = await start();
  const secrets = plane.client(Secret).namespace('default');
  await Promise.all(Array.from({ length: 200 }, (_, i) => secrets.create(secret(`s${i}`))));
  const { url } = await plane.listen();
  const kubeconfig = join(folder, 'admin.kubeconfig');
  const cluster = `clusters: [{name: a, cluster: {server: "${url}"}}]`;
  const context = 'contexts: [{name: a, context: {cluster: a, user: ""}}], current-context: a';
  await writeFile(kubeconfig, `{apiVersion: v1, kind: Config, ${cluster}, ${context}}`);

  let done = false;
  const errors: unknown[] = [];
  let operations = 0;
  const work = async (worker: number) => {
    for (let i = 0; !done; i++) {
      const name = `s${(i * 7 + worker * 50) % 200}`;
      try {
        await secrets.patch(name, 'merge', { metadata: { labels: { [`w${worker}`]: String(i) } } });
        t.deepEqual((await secrets.get(name)).data, data);
        await secrets.create(secret(`new-${worker}-${i}`));
        operations += 3;
      } catch (error) {
        errors.push(error);
      }
    }
  };
  const load = Promise.all([0, 1, 2, 3].map(work));
  const countsOf = async () => (await run('encrypt', 'status', '--kubeconfig', kubeconfig)).printed;
  const until = Date.now() + 30_000;
  await writeFile(configFile, config(`${k1}, ${k2}`));
  await writeFile(configFile, config(`${k2}, ${k1}`));
  while (!(await countsOf()).includes('writes with k2') && Date.now() < until);
  const { code, printed } = await run('encrypt', 'rotate', '--kubeconfig', kubeconfig);
  t.is(code, 0, printed);
  t.regex(printed, /^store default: \d+ of \d+ objects checked, \d+ rewritten\n/);
  t.regex(await countsOf(), /^store default\n {2}secrets: writes with k2; \d+ with k2\n$/);
  await writeFile(configFile, config(k2));
  done = true;
  await load;
  t.deepEqual(errors, []);
  t.true(operations > 0);
  t.like(await run('encrypt', 'status', '--kubeconfig', join(folder, 'none')), { code: 2 });
  t.like(await run('encrypt'), { code: 2 });
});
