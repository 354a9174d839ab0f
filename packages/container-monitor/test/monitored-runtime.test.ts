import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ContainerConfig, PodSandboxConfig } from '@keelson/container-runtime';
import { silentLogger } from '@keelson/core/runtime';
import test from 'ava';
import { type ContainerContext, Inventory, MonitoredRuntime, MonitoredSandbox, stagingFolder } from '../src/index.ts';
import {
  type Bench,
  bench,
  containerRecord,
  ownStat,
  sandboxRecord,
  TestContainer,
  TestSandbox,
} from './support/monitored.ts';

const first = 'a'.repeat(24);

function inventoryOf(b: Bench): Inventory<TestSandbox, TestContainer> {
  return new Inventory<TestSandbox, TestContainer>({
    around: b.context,
    logger: silentLogger,
    relistPeriodMs: 60_000,
    sandbox: (record, ready) => new TestSandbox(b.context, record, ready),
    container: (record) => new TestContainer(b.context, record),
  });
}

class TestRuntime extends MonitoredRuntime<TestSandbox, TestContainer> {
  override readonly name = 'test';
  override readonly streaming = {} as never;
  readonly #context: ContainerContext;
  beforeContainer: () => Promise<void> = async () => {};

  constructor(b: Bench, inventory: Inventory<TestSandbox, TestContainer>) {
    super({ around: b.context, inventory, capabilities: {} as never, nodeIp: () => '10.0.0.1' });
    this.#context = b.context;
  }
  sandboxOf(id: string): TestSandbox {
    return this.readySandbox(id);
  }
  override version = async () => ({}) as never;
  override status = async () => ({}) as never;
  override execSync = async () => ({}) as never;
  override listContainerStats = async () => [];
  protected override async makeSandbox(record: ReturnType<typeof sandboxRecord>): Promise<TestSandbox> {
    await MonitoredSandbox.write(this.#context, record);
    return new TestSandbox(this.#context, record, true);
  }
  protected override async makeContainer(sandbox: TestSandbox, config: ContainerConfig, id: string) {
    await stagingFolder(this.#context, id);
    await this.beforeContainer();
    if (config.image === 'bad') throw new Error('bad image');
    const container = new TestContainer(
      this.#context,
      containerRecord(id, { sandboxId: sandbox.id, config, createdAt: 1 }),
    );
    rmSync(join(this.#context.state.containers, `.new-${id}`), { recursive: true });
    return container;
  }
}

const podConfig = (name: string): PodSandboxConfig =>
  ({ metadata: { uid: name, name, namespace: 'ns', attempt: 0 } }) as PodSandboxConfig;
const config = (name: string, image = 'x'): ContainerConfig => ({ metadata: { name, attempt: 0 }, image });

test('a sandbox stops its containers once, and is marked as stopped before', async (t) => {
  const b = await bench(t);
  const sandbox = new TestSandbox(b.context, sandboxRecord(first), true);
  await MonitoredSandbox.write(b.context, sandbox.record);
  const container = new TestContainer(b.context, containerRecord('c'.repeat(24)));
  sandbox.containers.add(container);
  b.write(container.id, 'pid', ownStat());
  container.onKill = () => {
    t.false(sandbox.ready);
    b.write(container.id, 'logged', '');
    b.write(container.id, 'exit', '137\n');
  };
  t.false(await MonitoredSandbox.wasStopped(b.context, first));
  await Promise.all([sandbox.stop(), sandbox.stop()]);
  t.true(await MonitoredSandbox.wasStopped(b.context, first));
  t.deepEqual(sandbox.calls, ['release']);
  t.is(container.state, 'exited');
  await sandbox.remove();
  t.deepEqual(sandbox.calls, ['release', 'release', 'discard']);
  t.false(existsSync(join(b.state.sandboxes, `${first}.json`)));
  t.false(await MonitoredSandbox.wasStopped(b.context, first));
  t.deepEqual(
    b.events.filter(({ type }) => type.startsWith('sandbox')).map(({ type }) => type),
    ['sandboxNotReady', 'sandboxRemoved'],
  );
});

test('a removal of a sandbox that fails can be repeated; concurrent removals share one run', async (t) => {
  const b = await bench(t);
  const runtime = new TestRuntime(b, inventoryOf(b));
  const pod = await runtime.runPodSandbox(podConfig('p'));
  const one = await runtime.createContainer(pod, config('one'));
  const sandbox = runtime.sandboxOf(pod);
  sandbox.onDiscard = () => {
    throw new Error('busy');
  };
  const failed = await Promise.allSettled([runtime.removePodSandbox(pod), runtime.removePodSandbox(pod)]);
  t.deepEqual(
    failed.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  t.deepEqual(sandbox.calls, ['release', 'discard']);
  t.is((await runtime.podSandboxStatus(pod)).state, 'notReady', 'the runtime still lists it');
  t.true(existsSync(join(b.state.sandboxes, `${pod}.json`)));
  sandbox.onDiscard = () => {};
  await Promise.all([runtime.removePodSandbox(pod), runtime.removePodSandbox(pod)]);
  t.deepEqual(sandbox.calls, ['release', 'discard', 'discard']);
  t.deepEqual([...readdirSync(b.state.sandboxes), ...readdirSync(b.state.containers)], []);
  await t.throwsAsync(runtime.podSandboxStatus(pod), { code: 'NotFound' });
  await t.throwsAsync(runtime.containerStatus(one), { code: 'NotFound' });
  await Promise.all([sandbox.stop(), sandbox.remove()]);
  t.deepEqual(sandbox.calls, ['release', 'discard', 'discard'], 'a removed sandbox has nothing to stop or remove');
  t.deepEqual(
    b.events.filter(({ type }) => type === 'sandboxRemoved').map(({ type }) => type),
    ['sandboxRemoved'],
  );
});

test('the inventory reads sandboxes and containers of an earlier process, and removes orphans', async (t) => {
  const b = await bench(t);
  await MonitoredSandbox.write(b.context, sandboxRecord(first));
  await MonitoredSandbox.write(b.context, sandboxRecord('b'.repeat(24)));
  await MonitoredSandbox.writeStopped(b.context, 'b'.repeat(24));
  writeFileSync(join(b.state.sandboxes, 'other.json'), '{}');
  for (const [id, sandboxId] of [
    ['c'.repeat(24), first],
    ['d'.repeat(24), 'e'.repeat(24)],
  ] as const) {
    mkdirSync(b.state.container(id));
    writeFileSync(join(b.state.container(id), 'record.json'), JSON.stringify(containerRecord(id, { sandboxId })));
  }
  writeFileSync(join(b.state.container('c'.repeat(24)), 'resources.json'), '{"cpuShares":9}');
  b.write('c'.repeat(24), 'pid', ownStat());
  const inventory = inventoryOf(b);
  t.teardown(() => inventory.close());
  await inventory.load(false);
  t.deepEqual([...inventory.sandboxes.keys()].sort(), [first, 'b'.repeat(24)]);
  t.true(inventory.sandboxes.get(first)?.ready);
  t.false(inventory.sandboxes.get('b'.repeat(24))?.ready);
  t.deepEqual([...inventory.containers.keys()], ['c'.repeat(24)]);
  const container = inventory.containers.get('c'.repeat(24));
  t.is(container?.state, 'running');
  t.is(container?.resources.cpuShares, 9);
  t.is(inventory.sandboxes.get(first)?.containers.size, 1);
  t.false(existsSync(b.state.container('d'.repeat(24))));
  t.throws(() => inventory.claimSandbox(sandboxRecord(first).config), { code: 'AlreadyExists' });
  const { config: same } = containerRecord('c'.repeat(24));
  t.throws(() => inventory.claimContainer(first, same), { code: 'AlreadyExists' });
  inventory.forgetSandbox(inventory.sandboxes.get(first) as TestSandbox);
  t.is(inventory.containers.size, 0);
  t.notThrows(() => inventory.claimSandbox(sandboxRecord(first).config));
  t.notThrows(() => inventory.claimContainer(first, same));
});

test('after a reboot, all sandboxes are stopped', async (t) => {
  const b = await bench(t);
  await MonitoredSandbox.write(b.context, sandboxRecord(first));
  const inventory = inventoryOf(b);
  t.teardown(() => inventory.close());
  await inventory.load(true);
  t.false(inventory.sandboxes.get(first)?.ready);
});

test('a file event refreshes the container', async (t) => {
  const b = await bench(t);
  const inventory = inventoryOf(b);
  await inventory.load(false);
  t.teardown(() => inventory.close());
  const sandbox = new TestSandbox(b.context, sandboxRecord(first), true);
  const container = new TestContainer(b.context, containerRecord('c'.repeat(24)));
  inventory.addSandbox(sandbox);
  inventory.addContainer(sandbox, container);
  b.write(container.id, 'pid', ownStat());
  const deadline = Date.now() + 30_000;
  while (container.state !== 'running' && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 5));
  t.is(container.state, 'running');
});

test('a closed inventory reads nothing any more, neither at a file event nor at the end of a poll', async (t) => {
  const b = await bench(t);
  const polls: (() => void)[] = [];
  const after = (_ms: number, run: () => void) => {
    polls.push(run);
    return () => {};
  };
  const clock = { ...b.context.clock, after };
  const inventory = inventoryOf({ ...b, context: { ...b.context, clock } });
  await inventory.load(false);
  const sandbox = new TestSandbox(b.context, sandboxRecord(first), true);
  const container = new TestContainer(b.context, containerRecord('c'.repeat(24)));
  inventory.addSandbox(sandbox);
  inventory.addContainer(sandbox, container);
  t.is(polls.length, 1);
  polls[0]?.();
  await inventory.refreshAll();
  await new Promise((resolve) => setImmediate(resolve));
  t.is(polls.length, 2, 'an open inventory polls again');
  inventory.close();
  b.write(container.id, 'pid', ownStat());
  polls[1]?.();
  await inventory.refreshAll();
  await new Promise((resolve) => setImmediate(resolve));
  t.is(container.state, 'created');
  t.is(polls.length, 2);
});

test('a runtime creates, lists and removes sandboxes and containers', async (t) => {
  const b = await bench(t);
  const inventory = inventoryOf(b);
  const runtime = new TestRuntime(b, inventory);
  const pod = await runtime.runPodSandbox(podConfig('p'));
  b.now += 1;
  const later = await runtime.runPodSandbox(podConfig('q'));
  await t.throwsAsync(runtime.runPodSandbox(podConfig('p')), { code: 'AlreadyExists' });
  t.deepEqual(
    (await runtime.listPodSandboxes()).map(({ id }) => id),
    [later, pod],
  );
  // A file takes the place of the directory of logs.
  writeFileSync(join(b.state.root, 'file'), '');
  const broken = { ...podConfig('r'), logDirectory: join(b.state.root, 'file/logs') };
  for (const attempt of ['first', 'second'])
    await t.throwsAsync(runtime.runPodSandbox(broken), { code: 'ENOTDIR' }, `the metadata are free: ${attempt}`);
  t.deepEqual(
    (await runtime.listPodSandboxes({ id: pod })).map(({ id }) => id),
    [pod],
  );
  t.like(await runtime.podSandboxStatus(pod), { id: pod, state: 'ready', ip: '10.0.0.1' });
  const one = await runtime.createContainer(pod, config('one'));
  const two = await runtime.createContainer(later, config('two'));
  await t.throwsAsync(runtime.createContainer(pod, config('one')), { code: 'AlreadyExists' });
  await t.throwsAsync(runtime.createContainer(pod, config('three', 'bad')), { message: 'bad image' });
  t.deepEqual(readdirSync(b.state.containers).sort(), [one, two].sort(), 'what was prepared is removed');
  await t.notThrowsAsync(runtime.createContainer(pod, config('three')));
  t.deepEqual(
    (await runtime.listContainers({ sandboxId: later })).map(({ id }) => id),
    [two],
  );
  t.deepEqual(
    (await runtime.listContainers({ id: one })).map(({ id }) => id),
    [one],
  );
  t.is((await runtime.listContainers()).length, 3);
  t.is((await runtime.containerStatus(one)).state, 'created');
  await t.throwsAsync(runtime.containerStatus('nope'), { code: 'NotFound' });
  await t.throwsAsync(runtime.reopenContainerLog(one), { code: 'InvalidState' });
  b.write(two, 'pid', ownStat());
  await runtime.reopenContainerLog(two);
  t.deepEqual(b.requests, [`reopen ${two}`]);
  await runtime.stopPodSandbox(pod);
  await t.throwsAsync(runtime.createContainer(pod, config('four')), { code: 'InvalidState' });
  await runtime.removeContainer(one);
  await runtime.removeContainer(one);
  t.is((await runtime.listContainers({ id: one })).length, 0);
  await runtime.removePodSandbox(pod);
  await runtime.removePodSandbox(pod);
  await t.throwsAsync(runtime.podSandboxStatus(pod), { code: 'NotFound' });
  t.is(b.events.filter(({ type }) => type === 'sandboxReady').length, 2);
  t.is(b.events.filter(({ type }) => type === 'containerCreated').length, 3);
  await runtime[Symbol.asyncDispose]();
});

test('a container that is created while its sandbox stops is removed', async (t) => {
  const b = await bench(t);
  const inventory = inventoryOf(b);
  const runtime = new TestRuntime(b, inventory);
  const pod = await runtime.runPodSandbox(podConfig('p'));
  runtime.beforeContainer = () => runtime.stopPodSandbox(pod);
  await t.throwsAsync(runtime.createContainer(pod, config('one')), { code: 'InvalidState' });
  t.is((await runtime.listContainers()).length, 0);
  t.deepEqual(readdirSync(b.state.containers), []);
  await t.throwsAsync(runtime.runPodSandbox({ ...podConfig('r'), logDirectory: 'relative' }), {
    code: 'InvalidArgument',
  });
  await t.notThrowsAsync(runtime.runPodSandbox({ ...podConfig('r'), logDirectory: join(b.state.root, 'logs') }));
  t.true(existsSync(join(b.state.root, 'logs')));
});

test('a runtime starts, changes, stops and removes a container', async (t) => {
  const b = await bench(t);
  const inventory = inventoryOf(b);
  const runtime = new TestRuntime(b, inventory);
  const pod = await runtime.runPodSandbox(podConfig('p'));
  const id = await runtime.createContainer(pod, config('one'));
  const container = inventory.containers.get(id) as TestContainer;
  t.true(inventory.sandboxes.get(pod)?.containers.has(container));
  container.onLaunch = () => b.write(id, 'pid', ownStat());
  container.onKill = () => {
    b.write(id, 'logged', '');
    b.write(id, 'exit', '137\n');
  };
  await runtime.startContainer(id);
  t.is((await runtime.containerStatus(id)).state, 'running');
  await runtime.updateContainerResources(id, { cpuShares: 3 });
  t.deepEqual((await runtime.containerStatus(id)).resources, { cpuShares: 3 });
  await runtime.stopContainer(id, { gracePeriodMs: 0 });
  t.is((await runtime.containerStatus(id)).state, 'exited');
  await t.throwsAsync(runtime.reopenContainerLog(id), { code: 'InvalidState', message: /is exited, not running$/ });
  await t.notThrowsAsync(runtime.stopContainer('unknown', { gracePeriodMs: 0 }));
  await t.notThrowsAsync(runtime.stopPodSandbox('unknown'));
  await runtime.removeContainer(id);
  t.is(inventory.sandboxes.get(pod)?.containers.size, 0);
  await t.notThrowsAsync(runtime.createContainer(pod, config('one')), 'its identity is free');
});

test('a runtime that is disposed of ends the streams of its events, its polls and its connection', async (t) => {
  const b = await bench(t);
  let closed = 0;
  let canceled = 0;
  b.context.keeper.close = async () => void closed++;
  b.context.clock.after = () => () => void canceled++;
  const inventory = inventoryOf(b);
  await inventory.load(false);
  const runtime = new TestRuntime(b, inventory);
  const events = runtime.events()[Symbol.asyncIterator]();
  t.is((await events.next()).value.type, 'resync');
  const next = events.next();
  await runtime.runPodSandbox(podConfig('p'));
  t.is((await next).value.type, 'sandboxReady');
  await runtime[Symbol.asyncDispose]();
  t.true((await events.next()).done);
  t.deepEqual([closed, canceled], [1, 1]);
});
