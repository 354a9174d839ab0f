import { mkdir, mkdtemp, readdir, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ContainerRuntime, type ContainerStatus, formatLogLine } from '@keelson/container-runtime';
import { silentLogger } from '@keelson/core/runtime';
import type { Container } from '@keelson/kinds';
import test, { type ExecutionContext } from 'ava';
import { AgentPaths } from '../../../src/base/agent-paths.ts';
import {
  linkLog,
  removeContainer,
  removeOldSandboxes,
  removePodLogs,
  TerminationMessages,
} from '../../../src/pods/containers/container-files.ts';
import { containerAnnotations, type PodRuntimeState } from '../../../src/runtime-view/runtime-objects.ts';
import { testPod } from '../../support/bench.ts';

async function folderOf(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-files-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A runtime that records what is removed. */
function recorder() {
  const removed: string[] = [];
  const remove = async (id: string) => void removed.push(id);
  return { removed, runtime: { removeContainer: remove, removePodSandbox: remove } as unknown as ContainerRuntime };
}

test('the log of a container has a link of its own and is removed with it; those of other containers remain', async (t) => {
  const folder = await folderOf(t);
  const paths = new AgentPaths(join(folder, 'agent'), join(folder, 'log'));
  const pod = testPod('web');
  const { uid = '' } = pod.metadata ?? {};
  const logs = paths.podLogs(uid);
  await mkdir(logs, { recursive: true });
  await mkdir(paths.containers(uid), { recursive: true });
  const tools = { paths, logger: silentLogger };
  for (const [name, id] of [
    ['main', 'c1'],
    ['side', 'c2'],
    // The link of an earlier container with this id is replaced.
    ['main', 'c1'],
  ] as const)
    await linkLog(pod, { name } as Container, id, `${name}_0.log`, tools);
  const links = paths.containerLogs();
  t.deepEqual((await readdir(links)).sort(), ['web_default_main-c1.log', 'web_default_side-c2.log']);
  t.is(await readlink(join(links, 'web_default_main-c1.log')), join(logs, 'main_0.log'));

  const files = ['main_0.log', 'main_0.log.20260101-000000', 'main_1.log', 'side_0.log'];
  for (const file of files) await writeFile(join(logs, file), '');
  const messages = [paths.messageFile(uid, 'main', 0), paths.messageFile(uid, 'main', 1)];
  for (const file of messages) await writeFile(file, '');
  const ended = { id: 'c1', metadata: { name: 'main', attempt: 0 }, logPath: join(logs, 'main_0.log') };
  const { removed, runtime } = recorder();
  await removeContainer(uid, ended as ContainerStatus, paths, runtime, {});
  t.deepEqual(removed, ['c1']);
  t.deepEqual((await readdir(logs)).sort(), ['main_1.log', 'side_0.log']);
  t.deepEqual(await readdir(paths.containers(uid)), ['main_1.termination-log']);
  t.deepEqual(await readdir(links), ['web_default_side-c2.log']);

  const foreign = join(folder, 'foreign.log');
  await writeFile(foreign, '');
  await symlink(foreign, join(links, 'foreign.log'));
  await removeContainer(uid, { ...ended, id: 'c3', logPath: foreign } as ContainerStatus, paths, runtime, {});
  t.deepEqual((await readdir(folder)).sort(), ['agent', 'foreign.log', 'log'], 'a log elsewhere is the runtime’s');
  await removePodLogs(uid, paths);
  t.deepEqual(await readdir(links), ['foreign.log']);
  t.deepEqual(await readdir(join(folder, 'log/pods')), []);
});

test('replaced sandboxes are removed when they are not ready and their containers are gone', async (t) => {
  const { removed, runtime } = recorder();
  const sandbox = (id: string, state: string) => ({ id, state });
  const state = {
    sandboxes: [
      sandbox('newest', 'notReady'),
      sandbox('ready', 'ready'),
      sandbox('used', 'notReady'),
      sandbox('removed', 'notReady'),
      sandbox('empty', 'notReady'),
    ],
    containers: [
      { id: 'a', sandboxId: 'used' },
      { id: 'b', sandboxId: 'removed' },
    ],
  } as unknown as PodRuntimeState;
  await removeOldSandboxes(state, new Set(['b']), runtime, {});
  t.deepEqual(removed, ['removed', 'empty']);
});

test('the termination message is the end of its file, or of the log for FallbackToLogsOnError after a failure', async (t) => {
  const folder = await folderOf(t);
  let count = 0;
  const message = async (
    { file, policy = 'File', log = [] }: { file?: string; policy?: string; log?: readonly string[] },
    changes: Partial<ContainerStatus> = {},
  ): Promise<string | undefined> => {
    count += 1;
    const place = join(folder, String(count));
    if (file !== undefined) await writeFile(place, file);
    const logPath = `${place}.log`;
    const time = new Date(0).toISOString();
    await writeFile(logPath, Buffer.concat(log.map((text) => formatLogLine(time, 'stdout', false, Buffer.from(text)))));
    const container = { name: 'main', terminationMessagePolicy: policy };
    const annotations = containerAnnotations(testPod('p'), container as Container, place);
    const status = { id: String(count), state: 'exited', exitCode: 1, logPath, annotations, ...changes };
    const messages = new TerminationMessages();
    await messages.load([status as ContainerStatus]);
    await rm(place, { force: true });
    await messages.load([status as ContainerStatus]);
    const found = messages.of(status as ContainerStatus);
    messages.forget([status as ContainerStatus]);
    t.is(messages.of(status as ContainerStatus), undefined);
    return found;
  };
  const log = ['first', 'second'];
  const fallback = 'FallbackToLogsOnError';
  t.is(await message({ file: 'done' }), 'done');
  t.is(await message({ file: 'done' }, { state: 'running' }), undefined, 'only containers that have ended are read');
  t.is(await message({ file: `${'x'.repeat(5000)}end` }), `${'x'.repeat(4093)}end`);
  t.is(await message({ log }), undefined);
  t.is(await message({ file: '', log }), undefined);
  t.is(await message({ policy: fallback, log }), 'first\nsecond\n');
  t.is(await message({ file: 'own', policy: fallback, log }), 'own');
  t.is(await message({ policy: fallback, log }, { exitCode: 0 }), undefined);
  t.is(await message({ policy: fallback, log }, { logPath: join(folder, 'none') }), undefined);
  const numbers = Array.from({ length: 100 }, (_, i) => String(i));
  t.is(await message({ policy: fallback, log: numbers }), `${numbers.slice(20).join('\n')}\n`, 'at most 80 lines');
  const long = await message({ policy: fallback, log: ['y'.repeat(3000)] });
  t.is(long, `${'y'.repeat(2047)}\n`, 'at most 2048 bytes');
});
