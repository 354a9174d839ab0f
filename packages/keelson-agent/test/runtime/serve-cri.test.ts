import { spawn } from 'node:child_process';
import { lstat, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseOptions, resolveConfig, UsageError } from '@keelson/agent';
import { systemClock } from '@keelson/core/runtime';
import { createCriRuntime } from '@keelson/runtime-cri';
import { createFakeRuntime, FakeWorld } from '@keelson/runtime-fake';
import { listeningLogger, manifest, temporaryDirectory, until } from '@keelson/test-support';
import test from 'ava';
import { criSocketOf, serveRuntime } from '../../src/runtime/serve-cri.ts';

const binary = fileURLToPath(new URL('../../../dist/bundle/keelson-agent.js', import.meta.url));
const host = { hostname: () => 'n1', fileExists: () => false };
const configOf = (words: readonly string[]) => resolveConfig(parseOptions(words), host).config;
const asGiven = { criSocket: undefined, runtime: undefined };
const byDefault = '/var/run/keelson-agent/runtime.sock';

// The process runtime needs it.
const onLinux = process.platform === 'linux' ? test : test.skip;

test('the CRI socket is the default of --container-runtime-endpoint, whichever engine runtime-a uses', (t) => {
  t.is(criSocketOf(configOf([]), asGiven), byDefault);
  t.is(criSocketOf(configOf(['--runtime-a-endpoint=unix:///e.sock']), asGiven), byDefault);
});

test('no CRI socket is served for a remote runtime, for runtime-b, with --runonce, or when the environment disables it', (t) => {
  t.is(criSocketOf(configOf(['--container-runtime-endpoint=unix:///c.sock']), asGiven), undefined);
  t.is(criSocketOf(configOf(['--container-runtime=runtime-b']), asGiven), undefined);
  t.is(criSocketOf(configOf(['--runonce', '--pod-manifest-path=/x']), asGiven), undefined);
  t.is(criSocketOf(configOf([]), { ...asGiven, criSocket: '' }), undefined);
  t.is(criSocketOf(configOf([]), { ...asGiven, runtime: 'process' }), undefined);
});

test('KEELSON_AGENT_CRI_SOCKET sets another absolute path, and is rejected where it has no effect', (t) => {
  t.is(criSocketOf(configOf([]), { criSocket: '/x.sock', runtime: 'process' }), '/x.sock');
  t.throws(() => criSocketOf(configOf([]), { ...asGiven, criSocket: 'x.sock' }), {
    instanceOf: UsageError,
    message: 'KEELSON_AGENT_CRI_SOCKET must be an absolute path',
  });
  t.throws(() => criSocketOf(configOf(['--container-runtime=runtime-b']), { ...asGiven, criSocket: '/x.sock' }), {
    instanceOf: UsageError,
    message: /has no effect/,
  });
});

test('when the socket cannot be created the agent continues with one warning', async (t) => {
  const directory = await temporaryDirectory(t);
  await writeFile(join(directory, 'file'), '');
  const logger = listeningLogger();
  const engine = createFakeRuntime(new FakeWorld());
  const socketPath = join(directory, 'file', 'x.sock');
  t.is(await serveRuntime({ engine, socketPath, logger }), undefined);
  t.deepEqual(
    logger.lines.map(({ message }) => message),
    ['runtime not served as CRI, tools such as crictl cannot connect'],
  );
  t.is(logger.lines[0]?.fields['socket'], socketPath);
});

onLinux(
  'the command serves its runtime as CRI: clients list and control its pods, and the socket is removed at the end',
  async (t) => {
    t.timeout(60_000);
    const directory = await temporaryDirectory(t);
    const socketPath = join(directory, 'run', 'cri.sock');
    const manifests = join(directory, 'manifests');
    await mkdir(manifests);
    await writeFile(
      join(manifests, 'web.yaml'),
      manifest('web', 'host', '  hostNetwork: true\n  terminationGracePeriodSeconds: 1\n'),
    );
    const words = [
      `--pod-manifest-path=${manifests}`,
      '--file-check-frequency=1s',
      `--root-dir=${directory}/root`,
      `--cert-dir=${directory}/pki`,
      '--enable-server=false',
      '--read-only-port=0',
      '--healthz-port=0',
      '--stats-port=0',
      '--hostname-override=n1',
      '--fail-swap-on=false',
      '--make-iptables-util-chains=false',
      // How full this machine is decides nothing.
      '--eviction-hard=',
    ];
    const env = {
      ...process.env,
      KEELSON_AGENT_RUNTIME: 'process',
      KEELSON_AGENT_LOG_ROOT: join(directory, 'log'),
      KEELSON_AGENT_SYSCTL_ROOT: join(directory, 'no-sysctl'),
      KEELSON_AGENT_CRI_SOCKET: socketPath,
    };
    const child = spawn(process.execPath, [binary, ...words], { env, stdio: ['ignore', 'ignore', 'pipe'] });
    let stderr = '';
    child.stderr.on('data', (chunk) => {
      stderr += String(chunk);
    });
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    t.teardown(() => child.kill('SIGKILL'));
    await until(async () => (await lstat(socketPath).catch(() => undefined))?.isSocket());
    const endpoint = `unix://${socketPath}`;
    const { runtime } = await createCriRuntime({ endpoint, clock: systemClock, logger: listeningLogger() });
    t.is((await runtime.version()).runtimeApiVersion, 'v1');
    const first = await until(async () => (await runtime.listContainers({ state: 'running' }))[0]);
    t.is(first.metadata.name, 'main');
    await runtime.stopContainer(first.id, { gracePeriodMs: 1000 });
    const second = await until(async () => (await runtime.listContainers({ state: 'running' }))[0]);
    t.is(second.metadata.attempt, 1, 'the agent saw the end and started it again');
    await rm(join(manifests, 'web.yaml'));
    await until(async () => (await runtime.listPodSandboxes()).length === 0);
    await runtime[Symbol.asyncDispose]();
    child.kill('SIGTERM');
    t.is(await ended, 0, stderr);
    t.deepEqual(await readdir(join(directory, 'run')), []);
  },
);
