import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RuntimeCase } from '../case-context.ts';

export const stopCases: readonly RuntimeCase[] = [
  {
    id: 'stop.graceful',
    title: 'a process that exits on the stop signal ends long before the grace period',
    isCommon: true,
    async run({ runtime, started }) {
      const id = await started({ kind: 'run' });
      const begin = performance.now();
      await runtime.stopContainer(id, { gracePeriodMs: 60_000 });
      assert(performance.now() - begin < 30_000);
      const status = await runtime.containerStatus(id);
      assert.equal(status.state, 'exited');
      assert.equal(status.exitCode, 143);
      assert.equal(status.signal, 'SIGTERM');
    },
  },
  {
    id: 'stop.kills-after-the-grace-period',
    title: 'a process that ignores the stop signal is killed after the grace period, not before',
    isCommon: true,
    async run({ runtime, started }) {
      const id = await started({ kind: 'stubborn' });
      const begin = performance.now();
      await runtime.stopContainer(id, { gracePeriodMs: 500 });
      assert(performance.now() - begin >= 450, 'not before the grace period');
      const status = await runtime.containerStatus(id);
      assert.equal(status.state, 'exited');
      assert.equal(status.exitCode, 137);
    },
  },
  {
    id: 'stop.no-grace-kills-at-once',
    title: 'without a grace period it is killed immediately',
    isCommon: true,
    async run({ runtime, started }) {
      const id = await started({ kind: 'run' });
      await runtime.stopContainer(id, { gracePeriodMs: 0 });
      assert.equal((await runtime.containerStatus(id)).exitCode, 137);
    },
  },
  {
    id: 'stop.is-idempotent',
    title: 'stopping a container that has ended, was never started, or was removed has no effect',
    isCommon: true,
    async run({ runtime, commonSandbox, create, started, waitFor }) {
      const ended = await started({ kind: 'exit', code: 5 });
      await waitFor(ended, 'exited');
      await runtime.stopContainer(ended, { gracePeriodMs: 1000 });
      assert.equal((await runtime.containerStatus(ended)).exitCode, 5, 'the exit code is that of its own end');
      await runtime.stopContainer(await create(await commonSandbox(), { kind: 'run' }), { gracePeriodMs: 1000 });
      await runtime.stopContainer('no-such-container', { gracePeriodMs: 1000 });
    },
  },
  {
    id: 'stop.can-be-shortened',
    title: 'a second stop with a shorter grace period ends both',
    isCommon: true,
    async run({ runtime, started }) {
      const id = await started({ kind: 'stubborn' });
      const begin = performance.now();
      const patient = runtime.stopContainer(id, { gracePeriodMs: 60_000 });
      await runtime.stopContainer(id, { gracePeriodMs: 100 });
      await patient;
      assert(performance.now() - begin < 30_000);
      assert.equal((await runtime.containerStatus(id)).exitCode, 137);
    },
  },
  {
    id: 'stop.handler-decides-the-exit-code',
    title: 'a process that handles the stop signal determines its exit code',
    requires: ['shell'],
    isCommon: true,
    async run({ runtime, started, script, scratch }) {
      const ready = join(await scratch(), 'ready');
      const id = await started(script(`trap 'exit 9' TERM; : > ${ready}; while :; do sleep 0.05; done`));
      await waitForFile(ready);
      await runtime.stopContainer(id, { gracePeriodMs: 20_000 });
      const status = await runtime.containerStatus(id);
      assert.equal(status.exitCode, 9);
      assert.equal(status.reason, 'Error');
    },
  },
  {
    id: 'stop.signal-can-be-chosen',
    title: 'the stop signal is that of the configuration',
    requires: ['shell'],
    isCommon: true,
    async run({ runtime, started, script, scratch }) {
      const ready = join(await scratch(), 'ready');
      const text = `trap 'exit 4' TERM; trap 'exit 6' USR1; : > ${ready}; while :; do sleep 0.05; done`;
      const id = await started(script(text), { stopSignal: 'SIGUSR1' });
      await waitForFile(ready);
      await runtime.stopContainer(id, { gracePeriodMs: 20_000 });
      assert.equal((await runtime.containerStatus(id)).exitCode, 6);
    },
  },
  {
    id: 'stop.ends-descendants',
    title: 'children and grandchildren end with the container, also those that ignore signals',
    requires: ['shell'],
    isCommon: true,
    async run({ runtime, started, script, scratch }) {
      const folder = await scratch();
      const stubborn =
        `trap "" TERM HUP; echo alive > ${folder}/NAME; ` + `while :; do sleep 0.05; echo x >> ${folder}/NAME; done`;
      const text = ['one', 'two'].map((name) => `(sh -c '${stubborn.replaceAll('NAME', name)}' &) `).join('\n');
      const id = await started(script(`${text}\nsleep 1000`));
      for (const name of ['one', 'two']) await waitForFile(join(folder, name));
      await runtime.stopContainer(id, { gracePeriodMs: 200 });
      const sizes = async () =>
        Promise.all(['one', 'two'].map(async (name) => (await readFile(join(folder, name))).length));
      const then = await sizes();
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert.deepEqual(await sizes(), then, 'nobody writes any more');
    },
  },
  {
    id: 'stop.ends-what-left-the-session',
    title: 'a daemon in its own session ends with the container',
    requires: ['shell'],
    isCommon: true,
    async run({ runtime, started, script, scratch }) {
      const file = join(await scratch(), 'daemon');
      const id = await started(script(`setsid sh -c 'while :; do sleep 0.05; echo x >> ${file}; done' & sleep 1000`));
      await waitForFile(file);
      await runtime.stopContainer(id, { gracePeriodMs: 100 });
      const size = (await readFile(file)).length;
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert.equal((await readFile(file)).length, size, 'the daemon is gone');
    },
  },
  {
    id: 'stop.leftovers-end-with-the-first-process',
    title: 'background processes end with the first process',
    requires: ['shell'],
    isCommon: true,
    async run({ started, waitFor, script, scratch }) {
      const file = join(await scratch(), 'left');
      const id = await started(
        script(
          `sh -c 'while :; do sleep 0.05; echo x >> ${file}; done' & ` +
            `while [ ! -e ${file} ]; do sleep 0.02; done; exit 0`,
        ),
      );
      await waitFor(id, 'exited');
      const size = (await readFile(file)).length;
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert.equal((await readFile(file)).length, size);
    },
  },
  {
    id: 'stop.own-signal',
    title: 'a process that was killed by a signal has exit code 128 + number and the name of the signal',
    requires: ['shell'],
    isCommon: true,
    async run({ started, waitFor, script }) {
      const killed = await waitFor(await started(script('kill -KILL $$')), 'exited');
      assert.deepEqual([killed.exitCode, killed.signal, killed.reason], [137, 'SIGKILL', 'Error']);
      const interrupted = await waitFor(await started(script('kill -INT $$')), 'exited');
      assert.deepEqual([interrupted.exitCode, interrupted.signal], [130, 'SIGINT']);
    },
  },
  {
    id: 'stop.out-of-memory',
    title: 'a process that exceeds its memory limit ends as OOMKilled',
    requires: ['shell', 'memoryLimits'],
    isCommon: true,
    async run({ started, waitFor, script }) {
      const resources = { memoryLimitBytes: 32 * 1024 * 1024 };
      const id = await started(script('x=0123456789abcdef; while :; do x="$x$x"; done'), { resources });
      const status = await waitFor(id, 'exited');
      assert.equal(status.reason, 'OOMKilled');
      assert.notEqual(status.exitCode, 0);
    },
  },
];

async function waitForFile(path: string): Promise<void> {
  for (let rounds = 0; rounds < 2000; rounds += 1) {
    const found = await readFile(path).then(
      () => true,
      () => false,
    );
    if (found) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail(`no file ${path}`);
}
