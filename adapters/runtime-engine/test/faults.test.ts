import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isRuntimeError, parseLogLine, type RuntimeEvent } from '@keelson/container-runtime';
import { openEngine } from './support/engine-harness.ts';
import { exec, exited, sandbox, started, until } from './support/pods.ts';
import { closePodmanAfterwards, engineTest } from './support/shared-podman.ts';

closePodmanAfterwards();

/** Records the types of events until the stream ends; returns how it ended. */
async function listen(stream: AsyncIterable<RuntimeEvent> | undefined, seen: string[]): Promise<string> {
  try {
    for await (const { type } of stream ?? []) seen.push(type);
    return 'end';
  } catch (error) {
    return isRuntimeError(error) ? error.code : String(error);
  }
}

engineTest(
  'calls fail immediately while the engine is stopped, and the runtime and its containers continue afterwards',
  async (t, opened) => {
    const { runtime, images } = opened.engine;
    const id = await started(opened, await sandbox(opened), 'sleep 1000');
    const { pid } = await runtime.containerStatus(id);
    const before: string[] = [];
    const after: string[] = [];
    const lost = listen(runtime.events?.(), before);
    await opened.podman.stop();
    const begin = performance.now();
    await t.throwsAsync(runtime.listContainers(), { code: 'Unavailable' });
    await t.throwsAsync(runtime.status(), { code: 'Unavailable' });
    await t.throwsAsync(images.pullImage('registry.test/x:1'), { code: 'Unavailable' });
    await t.throwsAsync(sandbox(opened), { code: 'Unavailable' });
    t.true(performance.now() - begin < 5_000);
    t.is(await lost, 'Unavailable');
    const going = listen(runtime.events?.(), after);
    await opened.podman.start();
    await until(async () => after.filter((type) => type === 'resync').length >= 2);
    t.is((await runtime.containerStatus(id)).pid, pid);
    t.is(await exec(opened, id, 'echo hello'), 'hello\n');
    await runtime.stopContainer(id, { gracePeriodMs: 0 });
    await until(async () => after.includes('containerExited'));
    await runtime[Symbol.asyncDispose]();
    t.is(await going, 'end');
  },
);

engineTest('a runtime can be created before its engine runs', async (t, opened) => {
  await opened.podman.stop();
  const early = await openEngine(opened.podman);
  const { runtime } = early.engine;
  await t.throwsAsync(runtime.listPodSandboxes(), { code: 'Unavailable' });
  await t.throwsAsync(sandbox(early), { code: 'Unavailable' });
  const seen: string[] = [];
  const listening = listen(runtime.events?.(), seen);
  await opened.podman.start();
  await until(async () => seen.filter((type) => type === 'resync').length >= 2);
  t.is((await runtime.podSandboxStatus(await sandbox(early))).state, 'ready');
  await early.dispose();
  t.is(await listening, 'end');
});

engineTest(
  'a container that ends while the engine is stopped is reported with its exit code and complete log',
  async (t, opened) => {
    const logDirectory = join(opened.folder, 'logs');
    const id = await started(opened, await sandbox(opened, { logDirectory }), 'sleep 1; echo last words; exit 9', {
      logPath: 'a.log',
    });
    await opened.podman.stop();
    await until(async () => (await readFile(join(logDirectory, 'a.log'), 'utf8')).includes('last words'));
    await opened.podman.start();
    t.is((await exited(opened, id)).exitCode, 9);
  },
);

engineTest(
  'a call to an engine that hangs ends by its deadline or signal, and later calls succeed',
  async (t, opened) => {
    const { runtime } = opened.engine;
    const id = await sandbox(opened);
    await opened.podman.pause();
    try {
      const begin = performance.now();
      await t.throwsAsync(runtime.podSandboxStatus(id, { timeoutMs: 300 }), { code: 'DeadlineExceeded' });
      await t.throwsAsync(runtime.listPodSandboxes({}, { signal: AbortSignal.timeout(200) }), { code: 'Aborted' });
      t.true(performance.now() - begin < 5_000);
    } finally {
      opened.podman.resume();
    }
    t.is((await runtime.podSandboxStatus(id)).state, 'ready');
  },
);

engineTest(
  'a runtime that is killed while a container writes loses no line of the log and repeats none',
  async (t, opened) => {
    // Only one runtime at a time may have this owner and folder.
    await opened.engine.runtime[Symbol.asyncDispose]();
    const logDirectory = join(opened.folder, 'logs');
    const count = 3000;
    const script = `i=0; while [ $i -lt ${count} ]; do echo "line $i"; i=$((i+1)); [ $((i % 20)) = 0 ] && sleep 0.01; done`;
    const host = fileURLToPath(new URL('support/log-host.js', import.meta.url));
    const args = [host, JSON.stringify(opened.options), logDirectory, opened.podman.busyboxImage, script];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const [output] = (await once(child.stdout, 'data')) as [Buffer];
    const id = output.toString().trim();
    const path = join(logDirectory, 'app.log');
    const lines = async () => (await readFile(path, 'utf8').catch(() => '')).split('\n').slice(0, -1);
    await until(async () => (await lines()).length > 100);
    child.kill('SIGKILL');
    await once(child, 'exit');
    // Further runtimes attach and close while the container still writes.
    for (let round = 0; round < 3; round += 1) {
      const next = await openEngine(opened.podman, opened.options, opened.folder);
      const then = (await lines()).length;
      // The container may end in the meantime, when the engine is slow to attach.
      const running = async () => (await next.engine.runtime.containerStatus(id)).state === 'running';
      await until(async () => (await lines()).length > then || !(await running()));
      await next.engine.runtime[Symbol.asyncDispose]();
    }
    const last = await openEngine(opened.podman, opened.options, opened.folder);
    await exited(last, id);
    await last.engine.runtime[Symbol.asyncDispose]();
    const texts = (await lines()).map((line) => parseLogLine(Buffer.from(line))?.text.toString());
    t.deepEqual(
      texts,
      Array.from({ length: count }, (_, index) => `line ${index}`),
    );
  },
);
