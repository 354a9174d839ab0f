import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createHttpClient } from '@keelson/client';
import { Lease, Node, Pod } from '@keelson/kinds';
import { eventually } from '@keelson/testing';
import test from 'ava';
import {
  cleanEnvironment,
  memoryDirectory,
  removeDirectory,
  runKeelson,
  startKeelson,
} from '../../src/keelson-process.ts';

const binary = fileURLToPath(new URL('../../../../packages/keelson/dist/bundle/keelson.js', import.meta.url));

test('one of several keelson controllers works, and another takes over when it is killed or ends', async (t) => {
  const data = await memoryDirectory();
  t.teardown(() => removeDirectory(data));
  const server = await startKeelson(data, ['--insecure', '--storage=memory:']);
  t.teardown(() => server.kill());
  const client = createHttpClient({ server: server.url });
  t.teardown(() => client.close());
  const start = (...words: string[]): ChildProcess => {
    const child = spawn(process.execPath, [binary, 'controllers', '--data', data, ...words], {
      env: cleanEnvironment(),
      stdio: 'ignore',
    });
    t.teardown(() => child.kill('SIGKILL'));
    return child;
  };
  const ready = { type: 'Ready', status: 'True' };
  const size = { cpu: '4', memory: '1Gi', pods: '10' };
  await client.resource(Node).create({
    metadata: { name: 'n' },
    status: { capacity: size, allocatable: size, conditions: [ready] },
  } as Node);
  const pods = client.resource(Pod).namespace('default');
  const isBound = async (name: string) => {
    await pods.create({ metadata: { name }, spec: { containers: [{ name: 'c', image: 'i' }] } } as Pod);
    await eventually(async () => (await pods.get(name)).spec.nodeName === 'n', 60_000);
  };
  const holder = async (lease = 'keelson-scheduler') =>
    (await client.resource(Lease).namespace('kube-system').get(lease)).spec?.holderIdentity;

  const first = start();
  await isBound('a');
  const firstHolder = await holder();
  const second = start();
  first.kill('SIGKILL');
  await isBound('b');
  t.not(await holder(), firstHolder);
  const ended = new Promise((resolve) => second.once('exit', resolve));
  second.kill('SIGTERM');
  t.is(await ended, 0);
  t.is(await holder(), '', 'a process that ends releases the lease');
  start('--controllers=*,-api,-scheduler');
  await eventually(async () => (await holder('keelson-workload-controllers')) !== '', 60_000);
  t.is(await holder(), '');
  start('--controllers=scheduler');
  await isBound('c');
});

test('keelson controllers rejects names that are unknown or reserved for servers', async (t) => {
  const rejected = async (names: string) => {
    const { code, stderr } = await runKeelson(['controllers', `--controllers=${names}`]);
    return [code, stderr];
  };
  t.deepEqual(await rejected('*,-shceduler'), [
    2,
    'keelson: --controllers: unknown controller "shceduler"; did you mean scheduler?\n',
  ]);
  t.deepEqual(await rejected('certificatesigningrequest-signing-controller'), [
    2,
    'keelson: --controllers: certificatesigningrequest-signing-controller runs in servers only, which have the key of the authority\n',
  ]);
});
