import { existsSync, readdirSync } from 'node:fs';
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ContainerStatus, RuntimeError } from '@keelson/container-runtime';
import { FakeClock, silentLogger } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import { uidOf } from '../../../src/base/pod/pod-spec.ts';
import { LogRotation } from '../../../src/machine/logs/log-rotation.ts';
import { startBench, testPod } from '../../support/bench.ts';

const signal = new AbortController().signal;

async function startRotation(t: ExecutionContext, reopen: (path: string) => Promise<void>) {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-rotation-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'main_0.log');
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const container = { id: 'one', state: 'running', logPath: path } as ContainerStatus;
  const rotation = new LogRotation({
    runtime: { reopenContainerLog: () => reopen(path) },
    states: { all: () => [{ uid: 'u', name: 'n', namespace: 'ns', sandboxes: [], containers: [container] }] },
    ...{
      clock,
      logger: silentLogger,
      callTimeoutMs: 1000,
      periodMs: 10_000,
      bounds: { maxFileBytes: 100, maxFiles: 3 },
    },
  });
  const names = async () => (await readdir(folder)).sort();
  return { path, clock, rotation, names };
}

test('a full log is renamed and reopened, and no more than the configured number of files is kept', async (t) => {
  const { path, clock, rotation, names } = await startRotation(t, (log) => writeFile(log, ''));
  await writeFile(path, 'x'.repeat(99));
  await rotation.round(signal);
  t.deepEqual(await names(), ['main_0.log']);
  for (let index = 0; index < 4; index += 1) {
    await appendFile(path, `${index}${'x'.repeat(100)}`);
    await rotation.round(signal);
    // The clock stands still at first: names are in order all the same.
    if (index === 1) clock.advance(60_000);
  }
  t.deepEqual(await names(), ['main_0.log', 'main_0.log.20260101-000100', 'main_0.log.20260101-000101']);
  t.regex(await readFile(`${path}.20260101-000101`, 'latin1'), /^3x/);
});

test('a log keeps its name when the runtime fails to reopen it, unless the runtime has created the new file', async (t) => {
  let opens = false;
  const { path, rotation, names } = await startRotation(t, async (log) => {
    if (opens) await writeFile(log, 'new');
    throw new RuntimeError('Unavailable', 'gone');
  });
  await writeFile(path, 'x'.repeat(200));
  await rotation.round(signal);
  t.deepEqual(await names(), ['main_0.log']);
  opens = true;
  await rotation.round(signal);
  t.deepEqual(await names(), ['main_0.log', 'main_0.log.20260101-000000']);
  t.is(await readFile(path, 'latin1'), 'new');
});

test('the agent rotates logs of running containers at 10 MiB, and removes the rotated files with the container', async (t) => {
  const bench = await startBench(t, { logs: true });
  const pod = testPod('web');
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  const folder = join(bench.rootDir, 'log/pods', uidOf(pod));
  const names = () => (existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith('main_0.log.')) : []);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'main_0.log'), '');
  await truncate(join(folder, 'main_0.log'), 10 * 2 ** 20);
  await bench.until(() => names().length === 1);
  bench.pods.remove(pod);
  await bench.until(() => names().length === 0);
  t.deepEqual(names(), []);
});
