import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@keelson/testing';
import test from 'ava';
import { waitingPod } from '../../src/agent-process.ts';
import { removeDirectory, runKeelson, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';
import { findKubectl, Kubectl } from '../../src/kubectl.ts';

const waitMs = 60_000;
const canRun = process.platform === 'linux';
const command = canRun ? findKubectl() : undefined;
const nodeName = hostname().trim().toLowerCase();

const onLinux = command === undefined ? test.skip : test;

onLinux(
  'keelson up: kubectl sees a node that is Ready and runs a pod on it, which outlives the process and is adopted by the next',
  async (t) => {
    t.timeout(180_000);
    const data = await temporaryDirectory();
    t.teardown(() => removeDirectory(data));
    let server = await startKeelson(data, ['--log-level', 'warn'], 'up');
    t.teardown(() => server.kill());
    const kubectl = new Kubectl(command ?? '', server.kubeconfig, data);
    const node = await eventually(async () => {
      const { stdout } = await kubectl.try(['get', 'nodes', '--no-headers']);
      return /\bReady\b/.test(stdout) && stdout;
    }, waitMs);
    t.true(node.startsWith(nodeName), node);
    t.is(server.output().stdout, `keelson: serving on ${server.url}\n`);

    const pidFile = join(data, 'pid');
    const { spec } = waitingPod('hello', pidFile);
    const overrides = JSON.stringify({ apiVersion: 'v1', spec: { nodeName, ...spec } });
    await kubectl.run(['run', 'hello', '--image=host', `--overrides=${overrides}`]);
    await kubectl.run(['wait', '--for=condition=Ready', 'pod/hello', '--timeout=50s']);
    const pid = Number(await eventually(() => readFile(pidFile, 'utf8'), waitMs));
    t.true(process.kill(pid, 0));
    t.teardown(() => {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // Ended, as it should be.
      }
    });

    t.is(await server.stop(), 0, server.output().stderr);
    t.true(process.kill(pid, 0), 'a container outlives the agent');
    server = await startKeelson(data, ['--log-level', 'warn'], 'up');
    const after = new Kubectl(command ?? '', server.kubeconfig, data);
    await eventually(
      async () => (await after.run(['get', 'node', nodeName, '--no-headers'])).includes(' Ready '),
      waitMs,
    );
    t.regex(await after.run(['get', 'pod', 'hello', '--no-headers']), /1\/1\s+Running\s+0\s/);
    t.is(Number(await readFile(pidFile, 'utf8')), pid);
    await after.run(['delete', 'pod', 'hello', '--timeout=50s']);
    t.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
    t.is(await server.stop(), 0, server.output().stderr);
    t.false(server.output().stderr.includes('"level":"error"'), server.output().stderr);
  },
);

test('keelson up --agent=false runs no node, and keelson serve takes no --agent', async (t) => {
  const data = await temporaryDirectory();
  t.teardown(() => removeDirectory(data));
  const server = await startKeelson(data, ['--agent=false', '--insecure'], 'up');
  t.teardown(() => server.kill());
  const list = (await (await fetch(`${server.url}/api/v1/nodes`)).json()) as { items: unknown[] };
  t.deepEqual(list.items, []);
  t.is(await server.stop(), 0);
  t.false(existsSync(join(data, 'node')));
  const refused = await runKeelson(['serve', '--agent', '--data', data]);
  t.deepEqual(
    [refused.code, refused.stderr],
    [2, 'keelson: --agent is an option of keelson up; keelson serve runs no node\n'],
  );
});
