import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FakeClock, type Logger, silentLogger } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import { NetworkError, type NetworkPlugin } from '../src/index.ts';
import { answers, type Bench, type Call, netnsPath, request, scriptedPlugins } from './support/scripted-plugins.ts';

const killed = fileURLToPath(new URL('./support/connect-forever.js', import.meta.url));
const list = (...types: readonly string[]) => ({
  cniVersion: '1.0.0',
  name: 'pods',
  plugins: types.map((type) => ({ type })),
});
const shape = (calls: readonly Call[]) => calls.map(({ plugin, command }) => `${plugin} ${command}`);
const records = async ({ stateDir }: Bench) => readdir(join(stateDir, 'sandboxes')).catch(() => []);

async function failureOf(t: ExecutionContext, network: NetworkPlugin): Promise<NetworkError> {
  return (await t.throwsAsync(network.add(request), { instanceOf: NetworkError })) as NetworkError;
}

test('the error contains the message of a failed plugin, its error code and an error code of runtimes', async (t) => {
  for (const [pluginCode, code] of [
    [1, 'InvalidArgument'],
    [7, 'InvalidArgument'],
    [11, 'Unavailable'],
    [100, 'Internal'],
  ] as const) {
    const bench = await scriptedPlugins(t);
    const answer = JSON.stringify({
      cniVersion: '1.0.0',
      code: pluginCode,
      msg: 'no more addresses',
      details: 'range 10.9/24',
    });
    await bench.plugin('one', `if [ $CNI_COMMAND = ADD ]; then echo '${answer}'; exit 1; fi`);
    await bench.network('a.conflist', list('one'));
    const error = await failureOf(t, bench.open());
    t.is(error.code, code);
    t.is(error.message, `plugin one failed (ADD): no more addresses; range 10.9/24 (code ${pluginCode})`);
    t.deepEqual(error.failure, {
      plugin: 'one',
      command: 'ADD',
      pluginCode,
      pluginMessage: 'no more addresses; range 10.9/24',
    });
  }
});

for (const [what, script, message] of [
  ['ends without an answer', 'echo went wrong >&2; exit 3', 'plugin one exited with 3 (ADD): went wrong'],
  ['is killed', 'kill -KILL $$', 'plugin one exited with SIGKILL (ADD): no output'],
  ['answers no JSON', 'echo fine', 'plugin one returned no JSON result (ADD): fine'],
  ['gives no result', 'exit 0', 'plugin one returned no result (ADD)'],
  ['gives no address', 'echo "{}"', 'network pods assigned no address to the sandbox'],
] as const) {
  test(`a plugin that ${what} is an error, and DEL is called to undo its changes`, async (t) => {
    const bench = await scriptedPlugins(t);
    await bench.plugin('one', `if [ $CNI_COMMAND = ADD ]; then ${script}; fi`);
    await bench.network('a.conflist', list('one'));
    const error = await failureOf(t, bench.open());
    t.is(error.message, message);
    t.deepEqual(shape(await bench.calls()), ['loopback ADD', 'one ADD', 'one DEL']);
    t.deepEqual(await records(bench), []);
  });
}

test('when one of several plugins fails, DEL is called for all of them, without a previous result', async (t) => {
  const bench = await scriptedPlugins(t);
  await bench.plugin('first', answers('1.0.0'));
  await bench.plugin('second', '[ $CNI_COMMAND = DEL ]');
  await bench.plugin('third', answers('1.0.0'));
  await bench.network('a.conflist', list('first', 'second', 'third'));
  await failureOf(t, bench.open());
  const calls = await bench.calls();
  t.deepEqual(shape(calls), ['loopback ADD', 'first ADD', 'second ADD', 'third DEL', 'second DEL', 'first DEL']);
  t.true(calls.slice(3).every(({ stdin }) => !('prevResult' in stdin)));
});

test('a DEL that failed is recorded and retried later, also by the next agent', async (t) => {
  const bench = await scriptedPlugins(t);
  await bench.plugin('one', 'exit 1');
  await bench.network('a.conflist', list('one'));
  const network = bench.open();
  await failureOf(t, network);
  t.deepEqual(await records(bench), ['s1.json']);
  await t.throwsAsync(network.remove(request), { message: 'plugin one exited with 1 (DEL): no output' });
  await bench.plugin('one');
  await bench.forgetCalls();
  await bench.open().remove(request);
  t.deepEqual(shape(await bench.calls()), ['one DEL']);
  t.deepEqual(await records(bench), []);
});

test('after a restart a sandbox is disconnected with the configuration with which it was connected', async (t) => {
  const bench = await scriptedPlugins(t);
  await bench.plugin('one', answers('1.0.0'));
  await bench.network('a.conflist', {
    ...list(),
    plugins: [{ type: 'one', capabilities: { portMappings: true }, mark: 'first' }],
  });
  await bench.open().add({ ...request, portMappings: [{ protocol: 'TCP', containerPort: 80, hostPort: 8080 }] });
  await rm(join(bench.confDir, 'a.conflist'));
  await bench.forgetCalls();
  const next = bench.open();
  await t.throwsAsync(next.add({ ...request, sandboxId: 's2' }), {
    message: `no network config found in ${bench.confDir}`,
  });
  await next.remove({ sandboxId: 's1', netnsPath });
  await next.remove({ sandboxId: 's1', netnsPath });
  const calls = await bench.calls();
  t.deepEqual(shape(calls), ['one DEL'], 'and once only');
  t.like(calls[0]?.stdin, {
    mark: 'first',
    runtimeConfig: { portMappings: [{ hostPort: 8080, containerPort: 80, protocol: 'tcp' }] },
    prevResult: { ips: [{ address: '10.9.0.7/24' }] },
  });
});

test('DEL is called without a namespace when the namespace is gone, and succeeds when the sandbox is unknown', async (t) => {
  const bench = await scriptedPlugins(t);
  await bench.plugin(
    'one',
    `${answers('1.0.0')}; if [ $CNI_COMMAND = DEL ]; then echo '{"code":3,"msg":"unknown"}'; exit 1; fi`,
  );
  await bench.network('a.conflist', list('one'));
  const network = bench.open();
  await network.add(request);
  const file = join(bench.stateDir, 'no-namespace');
  await writeFile(file, '');
  await network.remove({ sandboxId: 's1', netnsPath: file });
  t.like((await bench.calls()).at(-1), { command: 'DEL', netns: '' });
  t.deepEqual(await records(bench), []);
  await t.throwsAsync(network.add({ ...request, netnsPath: file }), {
    code: 'InvalidArgument',
    message: `${file} is not a network namespace`,
  });
});

test('a path that no longer refers to the network namespace is not passed to plugins', async (t) => {
  const bench = await scriptedPlugins(t);
  await bench.plugin('one', answers('1.0.0'));
  await bench.network('a.conflist', list('one'));
  const network = bench.open();
  await network.add(request);
  await network.remove({ sandboxId: 's1', netnsPath: '/proc/self/ns/uts' });
  t.like((await bench.calls()).at(-1), { command: 'DEL', netns: '' });
});

test('an ADD that a killed agent had begun is undone by the next agent', async (t) => {
  t.timeout(30_000);
  const { bench, begun, pids } = await hanging(t);
  const { binDir, confDir, stateDir } = bench;
  const child = spawn(process.execPath, [killed, JSON.stringify({ binDir, confDir, stateDir })], { stdio: 'inherit' });
  t.teardown(() => child.kill('SIGKILL'));
  const ended = once(child, 'exit');
  await begun();
  child.kill('SIGKILL');
  await ended;
  // Plugins outlive their caller.
  for (const pid of await pids()) if (lives(pid)) process.kill(pid, 'SIGKILL');
  await bench.open().sweep(new Set());
  t.deepEqual(shape(await bench.calls()), ['loopback ADD', 'slow ADD', 'slow DEL']);
  t.deepEqual(await records(bench), []);
});

test('a sandbox is connected once, and its operations are serialized', async (t) => {
  const bench = await scriptedPlugins(t);
  await bench.plugin('one', answers('1.0.0'));
  await bench.network('a.conflist', list('one'));
  const network = bench.open();
  const [first, second, third] = await Promise.allSettled([
    network.add(request),
    network.add(request),
    network.remove(request),
  ]);
  t.deepEqual([first.status, second.status, third.status], ['fulfilled', 'rejected', 'fulfilled']);
  if (second.status === 'rejected') t.is(second.reason.code, 'AlreadyExists');
  t.deepEqual(shape(await bench.calls()), ['loopback ADD', 'one ADD', 'one DEL']);
  await t.throwsAsync(network.add({ ...request, sandboxId: '../s1' }), { code: 'InvalidArgument' });
});

test('unknown sandboxes are removed; one whose removal fails is retried at the next sweep', async (t) => {
  const bench = await scriptedPlugins(t);
  await bench.plugin('one', `${answers('1.0.0')}; [ "$CNI_COMMAND $CNI_CONTAINERID" != 'DEL s3' ]`);
  await bench.network('a.conflist', list('one'));
  for (const sandboxId of ['s1', 's2', 's3']) await bench.open().add({ ...request, sandboxId });
  await bench.forgetCalls();
  await bench.open().sweep(new Set(['s1']));
  t.deepEqual(
    (await bench.calls()).map(({ id, command }) => `${command} ${id}`),
    ['DEL s2', 'DEL s3'],
  );
  t.deepEqual((await records(bench)).sort(), ['s1.json', 's3.json']);
});

test('an invalid record causes a warning and does not prevent the removal', async (t) => {
  const bench = await scriptedPlugins(t);
  await bench.plugin('one', answers('1.0.0'));
  await bench.network('a.conflist', list('one'));
  const warnings: string[] = [];
  const logger: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) };
  const network = bench.open({ logger });
  await network.add(request);
  await writeFile(join(bench.stateDir, 'sandboxes', 's1.json'), '{"list":');
  await network.remove(request);
  t.deepEqual(warnings, ['invalid record of a sandbox network']);
  t.deepEqual(await records(bench), []);
});

/** A plugin that hangs, with a child, once it is reached. */
async function hanging(
  t: ExecutionContext,
): Promise<{ bench: Bench; pids: () => Promise<number[]>; begun: () => Promise<void> }> {
  const bench = await scriptedPlugins(t);
  const folder = await mkdtemp(join(tmpdir(), 'keelson-cni-hang-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'pids');
  await bench.plugin(
    'slow',
    `if [ $CNI_COMMAND = ADD ]; then sleep 300 & echo "$$ $!" > ${file}.new; mv ${file}.new ${file}; wait; fi`,
  );
  await bench.network('a.conflist', list('slow'));
  return {
    bench,
    pids: async () => (await readFile(file, 'utf8')).trim().split(' ').map(Number),
    async begun() {
      for (const end = performance.now() + 20_000; !existsSync(file); ) {
        if (performance.now() > end) throw new Error('the plugin was not called');
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
  };
}

function lives(pid: number): boolean {
  try {
    // What was killed and not yet waited for by its new parent has no memory left.
    return process.kill(pid, 0) && existsSync(`/proc/${pid}/exe`);
  } catch {
    return false;
  }
}

async function gone(pids: readonly number[]): Promise<void> {
  while (pids.some(lives)) await new Promise((resolve) => setTimeout(resolve, 5));
}

test('a plugin that hangs is killed with all its child processes, and DEL is called', async (t) => {
  t.timeout(30_000);
  const { bench, pids, begun } = await hanging(t);
  const clock = new FakeClock();
  const adding = bench.open({ clock, timeoutMs: 60_000 }).add(request);
  await begun();
  clock.advance(60_000);
  const error = await t.throwsAsync(adding, { instanceOf: NetworkError, code: 'DeadlineExceeded' });
  t.is(error?.message, 'network of a sandbox (s1): not done within 60000 ms');
  await gone(await pids());
  t.deepEqual(shape(await bench.calls()), ['loopback ADD', 'slow ADD', 'slow DEL']);
});

test('a caller may abort an operation or set a shorter deadline', async (t) => {
  t.timeout(30_000);
  const { bench, pids, begun } = await hanging(t);
  const controller = new AbortController();
  const network = bench.open();
  const adding = network.add(request, { signal: controller.signal });
  await begun();
  controller.abort();
  await t.throwsAsync(adding, { code: 'Aborted' });
  await gone(await pids());
  await t.throwsAsync(network.add(request, { timeoutMs: 300 }), { code: 'DeadlineExceeded' });
  await t.throwsAsync(network.add(request, { signal: controller.signal }), { code: 'Aborted' });
  await gone(await pids());
});
