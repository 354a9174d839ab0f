import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RuntimeError } from '@keelson/container-runtime';
import test from 'ava';
import { bench, containerRecord, deadStat, ownStat, TestContainer } from './support/monitored.ts';

const id = 'c'.repeat(24);

test('a container is running once its pid file is written, and start() waits for it', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  t.is(container.state, 'created');
  t.false(container.isActive);
  container.onLaunch = () => {
    t.true(container.isActive);
    b.write(id, 'monitor', ownStat());
    b.write(id, 'pid', ownStat());
  };
  await container.start();
  t.is(container.state, 'running');
  t.true(container.isActive);
  t.is(container.identity?.pid, process.pid);
  const status = container.status();
  t.is(status.pid, process.pid);
  t.true((status.startedAt ?? 0) > 1000);
  t.is(status.exitCode, undefined);
  t.deepEqual(
    b.events.map(({ type }) => type),
    ['containerStarted'],
  );
  const again = await t.throwsAsync(container.start());
  t.is((again as RuntimeError).code, 'InvalidState');
  t.deepEqual(container.calls, ['launch']);
});

test('a start time is never earlier than the creation', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id, { createdAt: 9_000_000_000_000 }));
  b.write(id, 'pid', ownStat());
  await container.refresh();
  t.is(container.status().startedAt, 9_000_000_000_000);
});

test('a start that the monitor reports as failed ends the container with StartError', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  container.onLaunch = () => {
    b.write(id, 'monitor', ownStat());
    b.write(id, 'failed', 'no such program\n');
    b.write(id, 'exit', '127\n');
  };
  const error = await t.throwsAsync(container.start());
  t.is((error as RuntimeError).code, 'StartFailed');
  t.is(error?.message, 'no such program');
  t.like(container.status(), { state: 'exited', exitCode: 127, reason: 'StartError', message: 'no such program' });
  t.is(container.status().signal, undefined);
});

test('an error of launch() ends the container, except Unavailable', async (t) => {
  const b = await bench(t);
  for (const [code, state] of [
    ['InvalidArgument', 'exited'],
    ['Unavailable', 'created'],
  ] as const) {
    const container = new TestContainer(b.context, containerRecord(code.padEnd(24, '0')));
    container.onLaunch = () => {
      throw new RuntimeError(code, 'why');
    };
    t.is(((await t.throwsAsync(container.start())) as RuntimeError).code, code);
    t.is(container.state, state);
    t.is(container.status().message, state === 'exited' ? 'why' : undefined);
  }
});

test('an exit is reported when the log is complete, or after the grace period', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  b.write(id, 'pid', ownStat());
  await container.refresh();
  await b.context.runFiles.writeExit(id, { exitCode: 143, finishedAt: b.now - 500 });
  await container.refresh();
  t.is(container.state, 'running');
  t.deepEqual(b.delays, [1501]);
  b.now += 1501;
  await container.refresh();
  t.is(container.state, 'exited');

  const other = new TestContainer(b.context, containerRecord('d'.repeat(24)));
  b.write(other.id, 'pid', ownStat());
  b.write(other.id, 'logged', '');
  await b.context.runFiles.writeExit(other.id, { exitCode: 0, finishedAt: b.now });
  await other.refresh();
  t.like(other.status(), { state: 'exited', exitCode: 0, reason: 'Completed' });
});

test('the status of an exit has reason, signal and a time that is not earlier than the start', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id, { createdAt: 5000 }));
  b.write(id, 'logged', '');
  await b.context.runFiles.writeExit(id, { exitCode: 137, finishedAt: 10 });
  await container.refresh();
  t.like(container.status(), { exitCode: 137, signal: 'SIGKILL', reason: 'Error', finishedAt: 5000 });
  t.deepEqual(container.calls, ['kill']);
  t.like(b.events.at(-1), { type: 'containerExited', containerId: id, at: 5000 });

  const killed = new TestContainer(b.context, containerRecord('e'.repeat(24)));
  killed.reason = 'OOMKilled';
  await b.context.runFiles.writeExit(killed.id, { exitCode: 128, finishedAt: 2000 });
  await killed.refresh();
  t.like(killed.status(), { reason: 'OOMKilled', exitCode: 128, finishedAt: 2000 });
  t.is(killed.status().signal, undefined);
});

test('a container whose monitor and process have ended without an exit record is lost', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  b.write(id, 'monitor', deadStat);
  b.write(id, 'pid', ownStat());
  await container.refresh();
  t.is(container.state, 'running');
  const lost = new TestContainer(b.context, containerRecord('f'.repeat(24)));
  b.write(lost.id, 'monitor', deadStat);
  b.write(lost.id, 'pid', deadStat);
  b.write(lost.id, 'logged', '');
  await lost.refresh();
  t.like(lost.status(), { state: 'exited', exitCode: 137, reason: 'ContainerStatusUnknown' });
  const alive = new TestContainer(b.context, containerRecord('9'.repeat(24)));
  b.write(alive.id, 'monitor', ownStat());
  b.write(alive.id, 'pid', deadStat);
  await alive.refresh();
  t.is(alive.state, 'running');
});

test('stop sends the stop signal, then kills until the container has ended', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  await container.stop(1000);
  t.deepEqual(container.calls, []);
  b.write(id, 'monitor', ownStat());
  b.write(id, 'pid', ownStat());
  await container.refresh();
  let kills = 0;
  container.onKill = () => {
    if (++kills < 2) return;
    b.write(id, 'logged', '');
    b.write(id, 'exit', '137\n');
  };
  await container.stop(20);
  t.is(container.state, 'exited');
  t.deepEqual(container.calls.slice(0, 3), [`signal ${process.pid}`, 'kill', 'kill']);
  const immediately = new TestContainer(b.context, containerRecord('b'.repeat(24)));
  b.write(immediately.id, 'pid', ownStat());
  b.write(immediately.id, 'monitor', ownStat());
  immediately.onKill = () => {
    b.write(immediately.id, 'logged', '');
    b.write(immediately.id, 'exit', '137\n');
  };
  await immediately.stop(0);
  t.is(immediately.calls[0], 'kill');
});

test('a stop that waits reads the files when they may have changed, and not all the time', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  b.write(id, 'pid', ownStat());
  let reads = 0;
  const { exit } = b.context.runFiles;
  b.context.runFiles.exit = (name) => {
    reads += 1;
    return exit.call(b.context.runFiles, name);
  };
  container.onKill = () => {
    b.write(id, 'logged', '');
    b.write(id, 'exit', '137\n');
  };
  await container.stop(200);
  t.is(container.state, 'exited');
  t.true(reads < 20, String(reads));
  const woken = new TestContainer(b.context, containerRecord('7'.repeat(24)));
  b.write(woken.id, 'pid', ownStat());
  await woken.refresh();
  const stopped = woken.stop(60_000);
  b.write(woken.id, 'logged', '');
  b.write(woken.id, 'exit', '0\n');
  woken.wake();
  await stopped;
  t.deepEqual([woken.state, woken.calls.includes('kill')], ['exited', true], 'what remains of it is killed');
});

test('a stop during a start ends the container once it runs', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  container.onKill = () => {
    b.write(id, 'logged', '');
    b.write(id, 'exit', '137\n');
  };
  const launched = new Promise<void>((resolve) => {
    container.onLaunch = resolve;
  });
  const started = container.start();
  await launched;
  const stopped = container.stop(0);
  await new Promise((resolve) => setImmediate(resolve));
  t.is(container.state, 'created');
  b.write(id, 'monitor', ownStat());
  b.write(id, 'pid', ownStat());
  await Promise.all([started, stopped]);
  t.is(container.state, 'exited');
});

test('a start without a process ends as failed after its time', async (t) => {
  const b = await bench(t);
  let passedMs = 0;
  b.context.clock.monotonic = () => {
    passedMs += 40_000;
    return passedMs;
  };
  const container = new TestContainer(b.context, containerRecord(id));
  await t.throwsAsync(container.start(), {
    code: 'StartFailed',
    message: 'the process did not start within 30000 ms',
  });
  t.like(container.status(), { state: 'exited', exitCode: 128, reason: 'StartError' });
});

test('remove ends a monitor that is alive', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  const monitor = spawn('sleep', ['1000']);
  t.teardown(() => monitor.kill('SIGKILL'));
  const ended = new Promise((resolve) => monitor.once('exit', (_code, signal) => resolve(signal)));
  b.write(id, 'monitor', readFileSync(`/proc/${monitor.pid}/stat`, 'latin1'));
  b.write(id, 'logged', '');
  b.write(id, 'exit', '0\n');
  await container.remove();
  t.is(await ended, 'SIGKILL');
});

test('remove drops the log stream, discards resources and deletes all files', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  b.write(id, 'monitor', deadStat);
  b.write(id, 'logged', '');
  b.write(id, 'exit', '0\n');
  await Promise.all([container.remove(), container.remove()]);
  await container.remove();
  t.deepEqual(b.requests, [`drop ${id}`]);
  t.is(container.calls.filter((call) => call === 'discard').length, 1);
  for (const kind of ['monitor', 'logged', 'exit']) t.false(existsSync(join(b.state.run, `${id}.${kind}`)), kind);
  t.false(existsSync(b.state.container(id)));
  t.is(b.events.at(-1)?.type, 'containerRemoved');
  t.is(b.events.filter(({ type }) => type === 'containerRemoved').length, 1);
  t.false(container.isActive);
  await t.throwsAsync(container.start(), { code: 'InvalidState' });
});

test('a removal that fails can be repeated, and is complete after the first success', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  b.write(id, 'exit', '0\n');
  container.onDiscard = () => {
    throw new Error('busy');
  };
  const failed = await Promise.allSettled([container.remove(), container.remove()]);
  t.deepEqual(
    failed.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  t.true(existsSync(b.state.container(id)));
  t.false(b.events.some(({ type }) => type === 'containerRemoved'));
  container.onDiscard = () => {};
  await container.remove();
  await container.remove();
  t.is(container.calls.filter((call) => call === 'discard').length, 2, 'concurrent removals share one run');
  t.deepEqual(readdirSync(b.state.containers), []);
  t.deepEqual(readdirSync(b.state.run), []);
  t.is(b.events.filter(({ type }) => type === 'containerRemoved').length, 1);
});

test('changed limits are merged, stored, and read by the next runtime', async (t) => {
  const b = await bench(t);
  const config = { ...containerRecord(id).config, resources: { cpuShares: 2, pidsLimit: 5 } };
  const container = new TestContainer(b.context, containerRecord(id, { config }));
  await container.update({ cpuShares: 7 });
  t.deepEqual(container.resources, { cpuShares: 7, pidsLimit: 5 });
  t.deepEqual(container.calls, ['apply {"cpuShares":7}']);
  const next = new TestContainer(b.context, containerRecord(id, { config }));
  t.deepEqual(next.status().resources, { cpuShares: 2, pidsLimit: 5 });
  await next.loadResources();
  t.deepEqual(next.status().resources, { cpuShares: 7, pidsLimit: 5 });
  b.write(id, 'exit', '0\n');
  await next.refresh();
  await t.throwsAsync(next.update({}), { code: 'InvalidState' });
});

test('a refresh during a pass is another pass, which reads what has changed meanwhile', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  const reads: string[] = [];
  const { exit } = b.context.runFiles;
  let second: Promise<void> | undefined;
  b.context.runFiles.exit = async (name) => {
    reads.push(name);
    const found = await exit.call(b.context.runFiles, name);
    if (reads.length === 1) {
      // The file appears after it was read.
      b.write(id, 'exit', '3\n');
      second = container.refresh();
    }
    return found;
  };
  await container.refresh();
  t.is(container.state, 'exited', 'the caller of the first pass observes the second');
  await second;
  t.is(reads.length, 2);
  await container.refresh();
  t.is(reads.length, 2, 'what has exited does not change any more');
});

test('a container that is lost has ended when the refresh resolves that discovered it', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  b.write(id, 'monitor', deadStat);
  await container.refresh();
  t.is(container.state, 'exited');
});
