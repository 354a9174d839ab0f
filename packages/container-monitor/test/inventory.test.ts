import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RuntimeError, type RuntimeEvent } from '@keelson/container-runtime';
import { FakeClock, type Logger, silentLogger } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import { createContainerContext, Inventory, MonitoredSandbox } from '../src/index.ts';
import { until } from './support/keeper.ts';
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
const id = 'c'.repeat(24);

interface Opened {
  readonly b: Bench;
  readonly clock: FakeClock;
  readonly lines: string[];
  readonly inventory: Inventory<TestSandbox, TestContainer>;
  readonly sandbox: TestSandbox;
  readonly container: TestContainer;
}

/** An inventory with one sandbox and one container. */
async function opened(t: ExecutionContext): Promise<Opened> {
  const b = await bench(t);
  const clock = new FakeClock();
  const lines: string[] = [];
  const log = (message: string) => void lines.push(message);
  const logger: Logger = { ...silentLogger, warn: log, error: log };
  const inventory = new Inventory<TestSandbox, TestContainer>({
    around: { ...b.context, clock },
    logger,
    relistPeriodMs: 60_000,
    sandbox: (record, ready) => new TestSandbox(b.context, record, ready),
    container: (record) => new TestContainer(b.context, record),
  });
  t.teardown(() => inventory.close());
  const sandbox = new TestSandbox(b.context, sandboxRecord(first), true);
  const container = new TestContainer(b.context, containerRecord(id));
  return { b, clock, lines, inventory, sandbox, container };
}

test('folders without a record are no containers, and the identity of a read container is taken', async (t) => {
  const { b, inventory, container } = await opened(t);
  await MonitoredSandbox.write(b.context, sandboxRecord(first));
  mkdirSync(b.state.container('d'.repeat(24)));
  mkdirSync(b.state.container('other'));
  writeFileSync(join(b.state.container('other'), 'record.json'), JSON.stringify(containerRecord('other')));
  writeFileSync(join(b.state.container(id), 'record.json'), JSON.stringify(container.record));
  b.write(id, 'exit', '4\n');
  await inventory.load(false);
  t.deepEqual([...inventory.containers.keys()], [id]);
  t.is(inventory.containers.get(id)?.status().exitCode, 4);
  t.deepEqual(readdirSync(b.state.containers).sort(), [id, 'd'.repeat(24), 'other'].sort());
});

test('an identity is free after its object is forgotten, and stays taken when it is forgotten twice', async (t) => {
  const { inventory, sandbox, container } = await opened(t);
  const claimContainer = () => inventory.claimContainer(first, container.record.config);
  const claimSandbox = () => inventory.claimSandbox(sandbox.record.config);
  claimSandbox();
  inventory.addSandbox(sandbox);
  claimContainer();
  inventory.addContainer(sandbox, container);
  t.throws(claimContainer, { code: 'AlreadyExists', message: /^container "name-c+", attempt 0, already exists$/ });
  t.throws(claimSandbox, { code: 'AlreadyExists', message: 'sandbox of pod "ns/pod", attempt 0 already exists' });
  inventory.forgetContainer(container);
  t.deepEqual([inventory.containers.size, sandbox.containers.size], [0, 0]);
  claimContainer();
  inventory.forgetContainer(container);
  t.throws(claimContainer, { code: 'AlreadyExists' });
  inventory.forgetSandbox(sandbox);
  t.is(inventory.sandboxes.size, 0);
  const identity = claimSandbox();
  inventory.forgetSandbox(sandbox);
  t.throws(claimSandbox, { code: 'AlreadyExists' });
  inventory.release(identity);
  t.notThrows(claimSandbox);
});

test('all state is read again periodically until the inventory is closed; a failure is logged', async (t) => {
  const { b, clock, lines, inventory, sandbox, container } = await opened(t);
  await inventory.load(false);
  inventory.addSandbox(sandbox);
  inventory.addContainer(sandbox, container);
  const { exit } = b.context.runFiles;
  let reads = 0;
  b.context.runFiles.exit = async () => {
    reads += 1;
    throw new Error('EMFILE');
  };
  t.is(clock.timers, 1);
  clock.advance(59_999);
  t.is(reads, 0);
  clock.advance(1);
  await until(() => clock.timers === 1);
  t.deepEqual([reads, lines], [1, ['failed to read the state of a container']]);
  b.context.runFiles.exit = (name) => exit.call(b.context.runFiles, name);
  b.context.runFiles.process = async () => ({ identity: { pid: process.pid, startTicks: 1 }, at: 0 });
  clock.advance(60_000);
  await until(() => container.state === 'running');
  t.is(container.state, 'running');
  inventory.close();
  t.is(clock.timers, 0);
});

test('a log keeper is started while a container is active, and again later when it is unavailable', async (t) => {
  const { b, clock, lines, inventory, sandbox, container } = await opened(t);
  let starts = 0;
  let failure: Error | undefined;
  b.context.keeper.ensure = async () => {
    starts += 1;
    if (failure !== undefined) throw failure;
  };
  inventory.addSandbox(sandbox);
  inventory.addContainer(sandbox, container);
  await inventory.keepLogs();
  t.is(starts, 0, 'a container that was not started writes nothing');
  b.write(id, 'pid', ownStat());
  await container.refresh();
  await inventory.keepLogs();
  t.deepEqual([starts, clock.timers, lines], [1, 0, []]);
  failure = new RuntimeError('Unavailable', 'no keeper');
  await inventory.keepLogs();
  t.deepEqual([starts, clock.timers, lines], [2, 1, ['failed to start the log keeper']]);
  failure = undefined;
  clock.advance(60_000);
  t.deepEqual([starts, clock.timers], [3, 0]);
  failure = new Error('unknown');
  await t.throwsAsync(inventory.keepLogs(), { message: 'unknown' });
});

test('the context of containers refreshes one after a time and logs a failure; events have the time of its clock', async (t) => {
  const { b, clock, lines, container } = await opened(t);
  const logger: Logger = { ...silentLogger, error: (message) => void lines.push(message) };
  const context = createContainerContext({ state: b.state, clock, logger, onKeeperLost: () => {} });
  b.write(id, 'pid', ownStat());
  context.later(container, 100);
  clock.advance(99);
  t.is(clock.timers, 1);
  clock.advance(1);
  await until(() => container.state === 'running');
  t.is(container.state, 'running');
  container.refresh = () => Promise.reject(new Error('EMFILE'));
  context.later(container, 1);
  clock.advance(1);
  await until(() => lines.length === 1);
  t.deepEqual(lines, ['failed to read the state of a container']);
  const stream = context.events.stream()[Symbol.asyncIterator]();
  const next = stream.next();
  context.events.resync();
  t.deepEqual((await next).value as RuntimeEvent, { type: 'resync', at: clock.now() });
  context.events.close();
  await context.keeper.close();
});
