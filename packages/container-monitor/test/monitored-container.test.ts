import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readCommandLine } from '@keelson/container-host';
import { RuntimeError } from '@keelson/container-runtime';
import test from 'ava';
import { type Bench, bench, containerRecord, deadStat, ownStat, TestContainer } from './support/monitored.ts';

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

test('start() waits until no launcher is executed, also while a process has no command line', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  // The command line of a process is empty for a moment whenever it executes a program.
  const script = 'if [ $1 -gt 0 ]; then exec /bin/sh -c "$0" "$0" $(($1-1)) launcher; fi; exec sleep 1000';
  const { pid } = spawn('/bin/sh', ['-c', script, script, '100', 'launcher'], { stdio: 'ignore' });
  t.teardown(() => process.kill(pid!, 'SIGKILL'));
  container.onLaunch = () => {
    b.write(id, 'pid', readFileSync(`/proc/${pid}/stat`, 'latin1'));
    void container.refresh();
  };
  await container.start();
  t.deepEqual(readCommandLine(pid!), ['sleep', '1000']);
});

test('start() resolves when the process has ended before it executed the command', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  container.onLaunch = () => b.write(id, 'pid', deadStat);
  await container.start();
  t.false(container.waits.includes(2), 'nothing is polled');
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

/** Makes the monotonic time pass only while the container waits, so that waits do not depend on the machine. */
function passTimeInWaits(b: Bench, container: TestContainer): void {
  let passedMs = 0;
  b.context.clock.monotonic = () => passedMs;
  container.onWait = () => {
    passedMs += container.waits.at(-1) ?? 0;
  };
}

test('stop sends the stop signal, then kills until the container has ended', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  passTimeInWaits(b, container);
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
  t.true(
    container.waits.some((ms) => ms > 50),
    'it waits before it kills again',
  );
  await container.stop(1000);
  t.is(container.calls.filter((call) => call.startsWith('signal')).length, 1, 'what has ended is not signalled');
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
  await woken.refresh();
  await stopped;
  t.deepEqual([woken.state, woken.calls.includes('kill')], ['exited', true], 'what remains of it is killed');
});

test('a stop during a start ends the container once it runs', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  passTimeInWaits(b, container);
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
  await t.throwsAsync(container.start(), { code: 'InvalidState', message: /it is starting$/ });
  b.write(id, 'monitor', ownStat());
  b.write(id, 'pid', ownStat());
  await Promise.all([started, stopped]);
  t.true(
    container.waits.every((ms) => ms > 20),
    'the files are not read all the time',
  );
  t.is(container.state, 'exited');
});

test('a start reads the files again after a while, in case no event reports them', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  container.onWait = () => b.write(id, 'pid', ownStat());
  await container.start();
  t.is(container.state, 'running');
  t.deepEqual(container.calls, ['launch']);
  t.is(container.waits.length, 1);
  await container.refresh();
  t.deepEqual([...new Set(container.inspected)], [process.pid], 'what runs is inspected');
});

test('a start that fails because a service is missing can be repeated', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  container.onLaunch = () => {
    throw new RuntimeError('Unavailable', 'no keeper');
  };
  await t.throwsAsync(container.start(), { code: 'Unavailable' });
  t.false(container.isActive);
  container.onLaunch = () => b.write(id, 'pid', ownStat());
  await container.start();
  t.is(container.state, 'running');
});

test('the status has the process id only while the container runs, and no signal for a failed start', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id, { logPath: '/logs/c.log' }));
  t.like(container.status(), { logPath: '/logs/c.log', mounts: [], resources: {}, startedAt: undefined });
  b.write(id, 'pid', ownStat());
  b.write(id, 'failed', 'killed\n');
  await container.refresh();
  t.is(container.status().pid, process.pid);
  b.write(id, 'logged', '');
  b.write(id, 'exit', '137\n');
  await container.refresh();
  const { pid, signal, reason, message } = container.status();
  t.deepEqual([pid, signal, reason, message], [undefined, undefined, 'StartError', 'killed']);
  const silent = new TestContainer(b.context, containerRecord('d'.repeat(24)));
  silent.onLaunch = () => b.write(silent.id, 'exit', '128\n{"reason":"StartError"}\n');
  await t.throwsAsync(silent.start(), { code: 'StartFailed', message: 'the process did not start' });
});

test('a first process that has ended is not signalled, and what remains of the container is killed', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  b.write(id, 'monitor', ownStat());
  b.write(id, 'pid', deadStat);
  container.onKill = () => {
    b.write(id, 'logged', '');
    b.write(id, 'exit', '0\n');
  };
  await container.stop(1);
  t.deepEqual([...new Set(container.calls)], ['kill']);
});

test('an exit that is written while a container is found lost is its exit', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  b.write(id, 'monitor', deadStat);
  const { exit } = b.context.runFiles;
  let reads = 0;
  b.context.runFiles.exit = async (name) => {
    reads += 1;
    if (reads === 2) b.write(id, 'exit', '7\n');
    return exit.call(b.context.runFiles, name);
  };
  await container.refresh();
  t.like(container.status(), { state: 'exited', exitCode: 7 });
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
