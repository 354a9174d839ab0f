import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import { createOciRuntime } from '@keelson/runtime-oci';
import { buildRoot, dockerArchive, installPrograms, tarOf } from '@keelson/test-support';
import { eventually } from '@keelson/testing';
import anyTest, { type ExecutionContext } from 'ava';
import { scratchDirectory } from '../../src/agent-node.ts';

const run = promisify(execFile);
const binary = fileURLToPath(
  new URL('../../../../packages/keelson-agent/dist/bundle/keelson-agent.js', import.meta.url),
);
const missing = missingHere();
const test = missing.length === 0 ? anyTest : anyTest.skip;
const needs = missing.length === 0 ? '' : ` (needs ${missing.join(', ')})`;
const waitMs = 60_000;

function missingHere(): readonly string[] {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return ['root on Linux'];
  const programs = ['runc', 'ip', 'iptables', 'nsenter', '../lib/cni/bridge'];
  return installPrograms(programs, ['runc', 'containernetworking-plugins', 'iptables', 'iproute2', 'util-linux']);
}

/** A network namespace that represents the host, with a minimal image. */
async function machine(t: ExecutionContext) {
  const { dir, remove } = await scratchDirectory();
  t.teardown(remove);
  const name = `ke-${randomBytes(5).toString('hex')}`;
  await run('ip', ['netns', 'add', name]);
  t.teardown(() => run('ip', ['netns', 'delete', name]));
  await run('ip', ['-n', name, 'link', 'set', 'lo', 'up']);
  // The mount namespace is that of the host: `ip netns exec` would hide the cgroups.
  const enter = [`--net=/run/netns/${name}`, '--'];
  for (const folder of ['manifests', 'root/images']) await mkdir(join(dir, folder), { recursive: true });
  buildRoot(join(dir, 'image'));
  tarOf(join(dir, 'image'), join(dir, 'layer.tar'));
  dockerArchive(join(dir, 'scratch'), join(dir, 'root/images/app.tar'), 'local.test/app:1', [join(dir, 'layer.tar')]);
  await writeFile(join(dir, 'resolv.conf'), 'nameserver 192.0.2.53\nsearch corp.example\n');
  return {
    dir,
    enter,
    inside: async (program: string, ...words: string[]) => (await run('nsenter', [...enter, program, ...words])).stdout,
  };
}

const port = '18255';
/** Prints the pods once two of them run. */
const readPods = `
  for (;;) {
    const text = await fetch('http://127.0.0.1:${port}/pods').then((a) => a.text(), () => '{}');
    const { items = [] } = JSON.parse(text);
    if (items.length === 2 && items.every(({ status }) => status?.phase === 'Running')) {
      console.log(text);
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }`;
const knock = `require('net').connect(80, process.argv[1]).on('error', (error) => console.log(error.code))`;

const manifest = (name: string) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'main',
          image: 'local.test/app:1',
          imagePullPolicy: 'IfNotPresent',
          command: ['/bin/sh', '-c', 'cat /etc/resolv.conf; exec sleep 600'],
        },
      ],
    },
  });

const sandboxesOf = (dir: string) => readdir(join(dir, 'root/runtime-oci/sandboxes')).catch(() => []);

/** Removes everything that a failed test has left behind. */
async function removePods(dir: string): Promise<void> {
  if ((await sandboxesOf(dir)).length === 0) return;
  const stateDirectory = join(dir, 'root/runtime-oci');
  const { runtime } = await createOciRuntime({
    stateDirectory,
    imageSources: [],
    clock: systemClock,
    logger: silentLogger,
  });
  for (const { id } of await runtime.listPodSandboxes()) await runtime.removePodSandbox(id);
  await runtime[Symbol.asyncDispose]();
}

test(`keelson-agent on the OCI runtime: pods get addresses of --pod-cidr and the configured DNS, and release the addresses${needs}`, async (t) => {
  t.timeout(240_000);
  const { dir, enter, inside } = await machine(t);
  for (const name of ['a', 'b']) await writeFile(join(dir, 'manifests', `${name}.json`), manifest(name));
  const words = [
    '--network-plugin=bridge',
    '--cni-bin-dir=/usr/lib/cni',
    '--pod-cidr=10.55.0.0/24',
    '--cluster-dns=10.96.0.10',
    '--cluster-domain=cluster.local',
    `--resolv-conf=${dir}/resolv.conf`,
    `--pod-manifest-path=${dir}/manifests`,
    `--root-dir=${dir}/root`,
    `--cert-dir=${dir}/pki`,
    '--address=127.0.0.1',
    '--port=0',
    `--read-only-port=${port}`,
    '--healthz-port=0',
    '--stats-port=0',
    '--hostname-override=n1',
    '--fail-swap-on=false',
    // The load of this machine has no effect.
    '--eviction-hard=',
  ];
  const env = { ...process.env, KEELSON_AGENT_RUNTIME: 'oci', KEELSON_AGENT_LOG_ROOT: join(dir, 'log') };
  const agent = spawn('nsenter', [...enter, process.execPath, binary, ...words], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.teardown(async () => {
    agent.kill('SIGKILL');
    await ended;
    await removePods(dir);
  });
  let stderr = '';
  agent.stderr.on('data', (chunk) => {
    stderr += String(chunk);
  });
  const ended = new Promise((resolve) => agent.once('exit', resolve));
  const asking = inside('timeout', '60', process.execPath, '--input-type=module', '-e', readPods).catch(() => '{}');
  const answer = await Promise.race([asking, ended.then(() => '{}')]);
  const { items: pods = [] } = JSON.parse(answer) as { items?: Pod[] };
  t.is(pods.length, 2, stderr);
  const ips = pods.map(({ status }) => status?.podIP ?? '').sort();
  t.deepEqual(ips, ['10.55.0.2', '10.55.0.3']);
  for (const ip of ips)
    t.is(
      (await inside(process.execPath, '-e', knock, ip)).trim(),
      'ECONNREFUSED',
      'the address exists, and no process listens',
    );
  t.regex(await inside('iptables-save'), /-A KUBE-FIREWALL .*0x8000\/0x8000/);
  const log = join(dir, 'log', 'pods', pods[0]?.metadata?.uid ?? '', 'main_0.log');
  const text = await eventually(async () => {
    const found = await readFile(log, 'utf8').catch(() => '');
    return found.includes('ndots') ? found : undefined;
  }, waitMs);
  t.regex(text, /nameserver 10\.96\.0\.10/);
  t.regex(text, /search default\.svc\.cluster\.local svc\.cluster\.local cluster\.local corp\.example/);
  for (const name of ['a', 'b']) await rm(join(dir, 'manifests', `${name}.json`));
  const left = async () => [...(await sandboxesOf(dir)), ...(await readdir(join(dir, 'root/network/sandboxes')))];
  await eventually(async () => ((await left()).length === 0 ? true : undefined), waitMs);
  t.notRegex(await inside('ip', '-br', 'link'), /veth/);
  agent.kill('SIGTERM');
  t.is(await ended, 0, stderr);
});
