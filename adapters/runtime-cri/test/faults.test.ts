import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isRuntimeError, type RuntimeErrorCode } from '@keelson/container-runtime';
import { stopProcess } from '@keelson/test-support';
import ava from 'ava';
import { ContainerStatusResponse } from '../src/api/container.ts';
import { createCriRuntime } from '../src/index.ts';
import { CriFront } from './support/cri-front.ts';
import { SharedContainerd, testsOn } from './support/shared-containerd.ts';

const opened = await SharedContainerd.open();
const test = testsOn(opened);
const skipFor = (reason: string) => (title: string, _body: Parameters<typeof test>[1]) =>
  ava.skip(`${title} [not run, ${reason}]`, () => {});
const withEvents = opened?.engine.runtime.capabilities.events ? test : skipFor('there is no events');
const withOldProtocol = opened?.isOld === false ? skipFor('there is no v1alpha2') : test;

async function codeOf(call: Promise<unknown>): Promise<RuntimeErrorCode | undefined> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error !== undefined && !isRuntimeError(error)) throw error;
  return error?.code;
}

/** Repeats a call until it succeeds. */
async function retried<T>(call: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + 15_000;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isRuntimeError(error, 'Unavailable') || performance.now() > deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

ava('an invalid endpoint is rejected immediately', async (t) => {
  for (const endpoint of ['', 'containerd.sock', 'http://127.0.0.1:1', 'tcp://127.0.0.1']) {
    await t.throwsAsync(createCriRuntime({ endpoint }), { code: 'InvalidArgument' }, endpoint);
  }
});

test('a runtime that is created before its daemon connects once the daemon runs', async (t, { containerd }) => {
  await containerd.stop();
  const { runtime, images } = await createCriRuntime({ endpoint: containerd.endpoint });
  t.false(runtime.capabilities.events);
  t.is(await codeOf(runtime.listPodSandboxes()), 'Unavailable');
  t.is(await codeOf(images.listImages()), 'Unavailable');
  t.is(
    await codeOf(runtime.runPodSandbox({ metadata: { name: 'x', namespace: 'y', uid: 'z', attempt: 0 } })),
    'Unavailable',
  );
  await containerd.start();
  t.true((await retried(() => images.listImages())).length > 0);
  t.is((await runtime.version()).runtimeName, 'containerd');
  await runtime[Symbol.asyncDispose]();
  t.is(await codeOf(runtime.version()), 'Unavailable', 'a closed runtime rejects calls');
});

for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
  test(`containers keep running while the daemon is stopped by ${signal}, and their state is read after its restart`, async (t, shared) => {
    const { containerd, engine } = shared;
    const { runtime } = engine;
    const running = await shared.started('sleep 1000');
    const folder = await mkdtemp('/tmp/keelson-cri-end-');
    t.teardown(() => rm(folder, { recursive: true }));
    const mounts = [{ hostPath: folder, containerPath: '/shared' }];
    const ending = await shared.started('while [ ! -e /shared/end ]; do sleep 0.05; done; exit 23', { mounts });
    const { pid } = await runtime.containerStatus(running);
    await containerd.stop(signal);
    await writeFile(join(folder, 'end'), '');
    t.is(await codeOf(runtime.containerStatus(running)), 'Unavailable');
    t.is(await codeOf(runtime.stopContainer(running, { gracePeriodMs: 0 })), 'Unavailable');
    await containerd.start();
    const status = await retried(() => runtime.containerStatus(running));
    t.is(status.state, 'running');
    t.is(status.pid, pid);
    const { exitCode, reason } = await shared.ended(ending);
    t.deepEqual([exitCode, reason], shared.isOld ? [23, 'Error'] : [137, 'ContainerStatusUnknown']);
    t.is(await shared.output(running, 'echo answers'), 'answers\n');
    await runtime.stopContainer(running, { gracePeriodMs: 5000 });
    t.is((await runtime.containerStatus(running)).exitCode, 143);
  });
}

test('calls to a daemon that hangs end by deadline and signal, and succeed when it continues', async (t, shared) => {
  const { containerd, engine } = shared;
  const { runtime, images } = engine;
  const id = await shared.started('sleep 1000');
  await stopProcess(containerd.pid);
  try {
    const options = { timeoutMs: 200 };
    const late = [
      runtime.listContainers({}, options),
      runtime.containerStatus(id, options),
      runtime.execSync(id, { command: ['true'] }, options),
      runtime.streaming.exec?.(
        id,
        { command: ['true'], stdin: true, stdout: true, stderr: false, tty: false },
        options,
      ),
      images.imageFsInfo(options),
    ];
    for (const call of late) t.is(await codeOf(Promise.resolve(call)), 'DeadlineExceeded');
    const controller = new AbortController();
    const aborted = codeOf(runtime.status({ signal: controller.signal }));
    controller.abort();
    t.is(await aborted, 'Aborted');
    const other = await shared.another({ probeTimeoutMs: 100 });
    t.is(await codeOf(other.runtime.version({ timeoutMs: 100 })), 'DeadlineExceeded');
    await other.runtime[Symbol.asyncDispose]();
  } finally {
    process.kill(containerd.pid, 'SIGCONT');
  }
  t.is((await runtime.containerStatus(id, { timeoutMs: 10_000 })).state, 'running');
});

test('streams end when the daemon ends', async (t, shared) => {
  const { containerd, engine } = shared;
  const id = await shared.started('sleep 1000');
  const request = { command: ['cat'], stdin: true, stdout: true, stderr: false, tty: false };
  const streams = await engine.runtime.streaming.exec?.(id, request);
  streams?.stdout?.resume();
  await containerd.stop('SIGKILL');
  await t.throwsAsync(async () => streams?.ended, { code: 'Unavailable' });
  streams?.close();
  await containerd.start();
  await retried(() => engine.runtime.listContainers());
});

withEvents('event streams end with the daemon, and later ones report the events that follow', async (t, shared) => {
  const { containerd, engine } = shared;
  const { runtime } = engine;
  const readEvents = async (types: string[], until: string) => {
    for await (const { type } of runtime.events?.() ?? []) {
      if (type !== 'resync') types.push(type);
      if (type === until) return;
    }
  };
  const before: string[] = [];
  const first = t.throwsAsync(readEvents(before, 'sandboxRemoved'), { code: 'Unavailable' });
  const sandboxId = await shared.sandbox();
  await containerd.stop('SIGKILL');
  await first;
  t.deepEqual(before, ['sandboxReady']);
  await t.throwsAsync(readEvents([], 'sandboxRemoved'), { code: 'Unavailable' });
  await containerd.start();
  await retried(() => runtime.listPodSandboxes());
  const after: string[] = [];
  const second = readEvents(after, 'sandboxRemoved');
  await runtime.removePodSandbox(sandboxId);
  await second;
  t.deepEqual(after, ['sandboxNotReady', 'sandboxRemoved']);
});

withOldProtocol(
  'a daemon that supports only an older protocol version is called with that version',
  async (t, { containerd }) => {
    const front = await CriFront.open(containerd.socket, `${containerd.folder}/old.sock`, { version: 'v1alpha2' });
    t.teardown(() => front.close());
    const { runtime, images } = await createCriRuntime({ endpoint: front.endpoint });
    t.teardown(() => runtime[Symbol.asyncDispose]());
    const sandboxId = await runtime.runPodSandbox({
      metadata: { name: 'old', namespace: 'old', uid: 'old', attempt: 0 },
    });
    const status = await runtime.podSandboxStatus(sandboxId);
    t.deepEqual([status.state, status.metadata.name], ['ready', 'old']);
    t.is((await images.imageStatus(containerd.busyboxImage))?.repoTags[0], containerd.busyboxImage);
    await runtime.removePodSandbox(sandboxId);
    t.true(front.calls.every((path) => path.startsWith('/runtime.v1alpha2.')));
    t.true(front.calls.length > 4);
  },
);

test('a container that exceeded its memory limit ends as OOMKilled, also when the daemon has missed it', async (t, shared) => {
  const { containerd } = shared;
  const missed = (response: Buffer): Buffer => {
    const { status, info } = ContainerStatusResponse.decode(response);
    return ContainerStatusResponse.encode({ status: { ...status, reason: 'Error' }, info });
  };
  const front = await CriFront.open(containerd.socket, `${containerd.folder}/missed.sock`, {
    version: 'v1',
    change: { ContainerStatus: missed },
  });
  t.teardown(() => front.close());
  const { runtime } = await createCriRuntime({ endpoint: front.endpoint });
  t.teardown(() => runtime[Symbol.asyncDispose]());
  const resources = { memoryLimitBytes: 32 * 1024 * 1024 };
  const exceeding = await shared.started('x=0123456789abcdef; while :; do x="$x$x"; done', { resources });
  const killed = await shared.started('kill -KILL $$', { resources });
  for (const id of [exceeding, killed]) await shared.ended(id);
  for (const _ of ['read from the log', 'remembered']) {
    t.is((await runtime.containerStatus(exceeding)).reason, 'OOMKilled');
    t.is((await runtime.containerStatus(killed)).reason, 'Error');
  }
});
