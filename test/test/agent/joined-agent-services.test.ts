import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@keelson/core/runtime';
import { Event, Pod, Service } from '@keelson/kinds';
import { freePort } from '@keelson/test-support';
import { eventually } from '@keelson/testing';
import test from 'ava';
import { createControlPlane, credentialsSigner, loadCredentials, writeKubeconfig } from 'keelson';
import { scratchDirectory } from '../../src/agent-node.ts';

const binary = fileURLToPath(
  new URL('../../../../packages/keelson-agent/dist/bundle/keelson-agent.js', import.meta.url),
);
const waitMs = 60_000;
const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux('a joined agent serves the addresses of services of its pods until it ends', async (t) => {
  t.timeout(4 * waitMs);
  const { dir, remove } = await scratchDirectory();
  t.teardown(remove);
  const data = join(dir, 'data');
  const credentials = await loadCredentials(data, '127.0.0.1', systemClock.now());
  const plane = await createControlPlane({
    certificateSigner: await credentialsSigner(credentials),
    controllers: ['*'],
  });
  t.teardown(() => plane.close());
  const { url } = await plane.listen({ credentials });
  await writeKubeconfig(data, { url, credentials });

  const agent = spawn(
    process.execPath,
    [
      binary,
      '--hostname-override=joined-1',
      `--root-dir=${dir}/agent`,
      `--cert-dir=${dir}/pki`,
      `--clusterconfig=${dir}/clusterconfig`,
      `--bootstrap-clusterconfig=${data}/bootstrap.kubeconfig`,
      '--enable-server=false',
      '--read-only-port=0',
      '--healthz-port=0',
      '--stats-port=0',
      '--fail-swap-on=false',
      '--make-iptables-util-chains=false',
      '--resolv-conf=',
      // The load of this machine has no effect.
      '--eviction-hard=',
    ],
    {
      env: {
        ...process.env,
        KEELSON_AGENT_RUNTIME: 'process',
        KEELSON_AGENT_LOG_ROOT: join(dir, 'log'),
        // The host is not changed.
        KEELSON_AGENT_SYSCTL_ROOT: join(dir, 'none'),
        KEELSON_AGENT_CGROUP_ROOT: join(dir, 'none'),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  t.teardown(() => agent.kill('SIGKILL'));
  let stderr = '';
  agent.stderr.on('data', (chunk) => {
    stderr += String(chunk);
  });
  const within = <T>(probe: () => Promise<T | undefined | false>) =>
    eventually(probe, waitMs).catch((error: Error) => {
      throw new Error(`${error.message}; output of the agent: ${stderr}`, { cause: error.cause });
    });

  const serve = "const s = require('net').createServer((c) => c.on('error', () => {}).end('pod'));";
  // The port is one that the operating system assigns; the pod ends by itself if the test is killed.
  const port = await freePort();
  const script = `${serve} s.listen(${port}); setTimeout(() => process.exit(), 300000)`;
  const pods = plane.client(Pod).namespace('default');
  await pods.create({
    metadata: { name: 'web', labels: { app: 'web' } },
    spec: {
      nodeName: 'joined-1',
      hostNetwork: true,
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image: 'host', command: [process.execPath, '-e', script] }],
    },
  });
  const { spec } = await plane
    .client(Service)
    .namespace('default')
    .create({
      metadata: { name: 'web' },
      spec: { selector: { app: 'web' }, ports: [{ port: 8080, targetPort: port }] },
    });
  const request = () =>
    text(connect({ host: spec.clusterIP ?? '', port: 8080 })).catch(({ code }: NodeJS.ErrnoException) => code);
  await within(async () => (await request()) === 'pod');
  const { items } = await plane.client(Event).namespace('default').list();
  t.deepEqual(
    items.filter(({ reason }) => reason === 'FailedToListen'),
    [],
  );
  await pods.delete('web');
  await within(async () => (await pods.list()).items.length === 0);
  await within(async () => (await request()) === 'ECONNREFUSED');
  const ended = once(agent, 'exit');
  agent.kill('SIGTERM');
  t.deepEqual(await ended, [0, null], stderr);
});
