import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { createHttpClient } from '@keelson/client';
import { EndpointSlice, Service } from '@keelson/kinds';
import { eventually } from '@keelson/testing';
import test from 'ava';
import { cleanEnvironment, memoryDirectory, removeDirectory, startKeelson } from '../../src/keelson-process.ts';

const binary = fileURLToPath(new URL('../../../../packages/keelson/dist/bundle/keelson.js', import.meta.url));
const address = Object.values(networkInterfaces())
  .flatMap((entries) => entries ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
const onNetwork = address === undefined || process.platform !== 'linux' ? test.skip : test;

onNetwork('keelson proxy serves the address of a service as a client of a server, until it ends', async (t) => {
  const data = await memoryDirectory();
  t.teardown(() => removeDirectory(data));
  const server = await startKeelson(data, ['--insecure', '--storage=memory:']);
  t.teardown(() => server.kill());
  const client = createHttpClient({ server: server.url });
  t.teardown(() => client.close());
  const pod = createServer((socket) => socket.on('error', () => {}).end('pod'));
  pod.listen(0, address);
  await once(pod, 'listening');
  t.teardown(() => pod.close());
  const { spec } = await client
    .resource(Service)
    .namespace('default')
    .create({ metadata: { name: 'web' }, spec: { ports: [{ port: 8080 }] } });
  await client
    .resource(EndpointSlice)
    .namespace('default')
    .create({
      metadata: { name: 'web', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [address ?? ''] }],
      ports: [{ name: '', port: (pod.address() as AddressInfo).port, protocol: 'TCP' }],
    });
  const request = () =>
    text(connect({ host: spec.clusterIP ?? '', port: 8080 })).catch(({ code }: NodeJS.ErrnoException) => code);
  t.is(await request(), 'ECONNREFUSED');
  const proxy = spawn(process.execPath, [binary, 'proxy', '--data', data], {
    env: cleanEnvironment(),
    stdio: 'ignore',
  });
  t.teardown(() => proxy.kill('SIGKILL'));
  await eventually(async () => (await request()) === 'pod', 60_000);
  const ended = once(proxy, 'exit');
  proxy.kill('SIGTERM');
  t.deepEqual((await ended)[0], 0);
  t.is(await request(), 'ECONNREFUSED');
});
