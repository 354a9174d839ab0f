import { readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@keelson/testing';
import test from 'ava';
import { removeDirectory, runKeelson, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';

interface Answer {
  readonly status: number;
  readonly body: { readonly message?: string; readonly items?: readonly unknown[]; readonly [field: string]: unknown };
}

async function call(url: string, method: string, path: string, body?: object): Promise<Answer> {
  const content =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  const answer = await fetch(url + path, { method, ...content });
  return { status: answer.status, body: (await answer.json()) as Answer['body'] };
}

const ignore = { kind: 'DeleteOptions', apiVersion: 'v1', ignoreStoreReadErrorWithClusterBreakingPotential: true };
const configMap = (name: string, text: string) => ({ metadata: { name }, data: { text } });

/** Changes one byte of every copy of the text in the data file. */
async function damage(data: string, text: string): Promise<void> {
  const file = join(data, 'store', 'data.mdb');
  const bytes = await readFile(file);
  for (let at = bytes.indexOf(text); at !== -1; at = bytes.indexOf(text, at + 1)) bytes[at] = (bytes[at] ?? 0) ^ 0x20;
  await writeFile(file, bytes);
}

test('reads of a collection with a damaged object fail with its name, others succeed, and the API can remove it', async (t) => {
  const data = await temporaryDirectory();
  t.teardown(() => removeDirectory(data));
  const maps = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`;
  let server = await startKeelson(data, ['--insecure']);
  t.teardown(() => server.kill());
  for (const name of ['sick', 'well']) await call(server.url, 'POST', '/api/v1/namespaces', { metadata: { name } });
  await call(server.url, 'POST', maps('sick'), configMap('victim', 'text-of-the-victim'));
  await call(server.url, 'POST', maps('sick'), configMap('neighbour', 'other'));
  await call(server.url, 'POST', maps('well'), configMap('other', 'other'));
  t.is(await server.stop(), 0);
  await damage(data, 'text-of-the-victim');

  const verified = await runKeelson(['verify', '--data', data]);
  t.is(verified.code, 1);
  t.regex(
    verified.stdout,
    /damaged: \/.*configmaps\/sick\/victim: the record fails its checksum\n {2}1 damages found\n$/,
  );

  server = await startKeelson(data, ['--insecure']);
  const { url } = server;
  for (const path of ['/api/v1/configmaps', maps('sick'), `${maps('sick')}/victim`]) {
    const { status, body } = await call(url, 'GET', path);
    t.is(status, 500, path);
    t.regex(body.message ?? '', /configmaps\/sick\/victim/, path);
  }
  t.is((await call(url, 'GET', `${maps('sick')}/neighbour`)).status, 200);
  const well = await call(url, 'GET', maps('well'));
  t.is(well.body.items?.length, 1, well.body.message);
  t.is((await call(url, 'GET', '/api/v1/pods')).status, 200);
  t.is((await call(url, 'POST', maps('sick'), configMap('new', 'x'))).status, 201);
  t.is((await call(url, 'DELETE', '/api/v1/namespaces/well')).status, 200);
  await eventually(async () => (await call(url, 'GET', '/api/v1/namespaces/well')).status === 404, 20_000);

  const reported = /"resource":"configmaps".*"msg":"a collection cannot be followed"/;
  await eventually(() => reported.test(server.output().stderr), 20_000);

  t.is((await call(url, 'DELETE', `${maps('sick')}/victim`)).status, 500);
  const combined = await call(url, 'DELETE', `${maps('sick')}/victim`, { ...ignore, gracePeriodSeconds: 0 });
  t.is(combined.status, 422);
  t.regex(combined.body.message ?? '', /cannot be set together with \.gracePeriodSeconds/);
  t.is((await call(url, 'DELETE', maps('sick'), ignore)).status, 422);
  t.is((await call(url, 'DELETE', `${maps('sick')}/victim`, ignore)).status, 200);
  t.is((await call(url, 'DELETE', `${maps('sick')}/victim`, ignore)).status, 404);
  t.is((await call(url, 'GET', '/api/v1/configmaps')).status, 200);
  t.is((await call(url, 'DELETE', '/api/v1/namespaces/sick')).status, 200);
  await eventually(async () => (await call(url, 'GET', '/api/v1/namespaces/sick')).status === 404, 20_000);
  t.is(await server.stop(), 0);
});

test('verify reports an intact store, a missing one, one in use and a truncated one, which the server also rejects', async (t) => {
  const data = await temporaryDirectory();
  t.teardown(() => removeDirectory(data));
  const missing = await runKeelson(['verify', '--data', data]);
  t.deepEqual(
    [missing.code, missing.stdout],
    [1, `store default (lmdb): there is no store in ${join(data, 'store')}\n`],
  );
  const server = await startKeelson(data, ['--insecure']);
  t.teardown(() => server.kill());
  const used = await runKeelson(['verify', '--data', data]);
  t.is(used.code, 1);
  t.regex(used.stdout, /in use by process \d+ on .*; one process at a time may open it\n$/);
  t.is(await server.stop(), 0);
  const sound = await runKeelson(['verify', '--data', data]);
  t.is(sound.code, 0, sound.stdout + sound.stderr);
  t.regex(sound.stdout, /^store default \(lmdb\): \d+ objects at revision \d+, \d+ changes since revision \d+\n/);
  t.regex(sound.stdout, / {2}4 namespaces\n/);
  const file = join(data, 'store', 'data.mdb');
  // The last pages may be free ones; half of the file contains pages in use.
  await truncate(file, Math.floor((await stat(file)).size / 2));
  for (const command of ['verify', 'serve']) {
    const { code, stdout, stderr } = await runKeelson([
      command,
      '--data',
      data,
      '--insecure',
      '--listen',
      '127.0.0.1:0',
    ]);
    t.is(code, 1, command);
    t.regex(stdout + stderr, /data\.mdb is damaged and cannot be used; restore a back-up\. Found: /, command);
  }
  const memory = await runKeelson(['verify', '--storage', 'memory:', '--data', data]);
  t.deepEqual([memory.code, memory.stdout.includes('nothing to verify')], [0, true]);
});
