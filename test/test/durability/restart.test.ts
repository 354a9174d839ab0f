import type { KubeList, KubeObject } from '@keelson/core';
import test from 'ava';
import { type KeelsonProcess, removeDirectory, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';
import { readWatch } from '../../src/watch-lines.ts';

const path = '/api/v1/namespaces/default/configmaps';

async function create(server: KeelsonProcess, name: string): Promise<KubeObject> {
  const response = await fetch(`${server.url}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ metadata: { name } }),
  });
  if (response.status !== 201) throw new Error(`create ${name}: ${response.status} ${await response.text()}`);
  return (await response.json()) as KubeObject;
}

async function list(server: KeelsonProcess): Promise<KubeList> {
  return (await (await fetch(`${server.url}${path}`)).json()) as KubeList;
}

test('after kill -9 all objects remain, and a watch resumes from its last resourceVersion without loss or repetition', async (t) => {
  t.timeout(120_000);
  const data = await temporaryDirectory();
  t.teardown(() => removeDirectory(data));
  const first = await startKeelson(data, ['--insecure']);
  for (let i = 0; i < 20; i += 1) await create(first, `before-${i}`);
  const seen = await readWatch(
    `${first.url}${path}?watch=1&resourceVersion=${(await list(first)).metadata.resourceVersion}`,
    5,
    async () => {
      for (let i = 0; i < 5; i += 1) await create(first, `watched-${i}`);
    },
  );
  t.deepEqual(
    seen.map((event) => event.object.metadata?.name),
    ['watched-0', 'watched-1', 'watched-2', 'watched-3', 'watched-4'],
  );
  for (let i = 0; i < 5; i += 1) await create(first, `missed-${i}`);
  const before = await list(first);
  await first.kill();

  const second = await startKeelson(data, ['--insecure']);
  t.teardown(async () => {
    await second.stop();
  });
  const after = await list(second);
  t.deepEqual(after.items, before.items);
  t.true(Number(after.metadata.resourceVersion) >= Number(before.metadata.resourceVersion));
  const last = seen.at(-1)?.object.metadata?.resourceVersion ?? '';
  const resumed = await readWatch(`${second.url}${path}?watch=1&resourceVersion=${last}`, 7, async () => {
    for (let i = 0; i < 2; i += 1) await create(second, `afterwards-${i}`);
  });
  t.deepEqual(
    resumed.map((event) => `${event.type} ${event.object.metadata?.name}`),
    ['missed-0', 'missed-1', 'missed-2', 'missed-3', 'missed-4', 'afterwards-0', 'afterwards-1'].map(
      (name) => `ADDED ${name}`,
    ),
  );
});

test('SIGTERM ends watches cleanly, completes running writes and exits with 0', async (t) => {
  t.timeout(60_000);
  const data = await temporaryDirectory();
  t.teardown(() => removeDirectory(data));
  const server = await startKeelson(data, ['--insecure', '--storage', 'memory:']);
  const watch = await fetch(`${server.url}${path}?watch=1`);
  const ended = watch.text();
  await create(server, 'last');
  t.is(await server.stop(), 0);
  const lines = (await ended).trim().split('\n');
  t.regex(lines.at(-1) ?? '', /"last"|kube-root/);
  t.is(server.output().stdout.trim().split('\n').length, 1);
});

test('a continue token is invalid after a restart with another configuration', async (t) => {
  t.timeout(60_000);
  const data = await temporaryDirectory();
  t.teardown(() => removeDirectory(data));
  const page = async (server: KeelsonProcess, query: string) => fetch(`${server.url}/api/v1/namespaces?${query}`);
  const first = await startKeelson(data, ['--insecure']);
  const { metadata } = (await (await page(first, 'limit=2')).json()) as KubeList;
  const token = encodeURIComponent(metadata.continue ?? '');
  await first.stop();
  const same = await startKeelson(data, ['--insecure']);
  const rest = (await (await page(same, `limit=2&continue=${token}`)).json()) as KubeList;
  t.is(rest.items.length, 2);
  await same.stop();
  const other = await startKeelson(data, [
    '--insecure',
    '--kinds',
    new URL('../../src/extra-kind.js', import.meta.url).pathname,
  ]);
  t.teardown(async () => {
    await other.stop();
  });
  const refused = await page(other, `limit=2&continue=${token}`);
  t.is(refused.status, 410);
  t.is(((await refused.json()) as { reason: string }).reason, 'Expired');
});
