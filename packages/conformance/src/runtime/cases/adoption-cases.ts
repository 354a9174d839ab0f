import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { RuntimeEvent } from '@keelson/container-runtime';
import { joinLog, type RuntimeCase, readLog, refused } from '../case-context.ts';

export const adoptionCases: readonly RuntimeCase[] = [
  {
    id: 'adopt.sees-everything',
    title: 'another engine on the same data reports every sandbox and container unchanged',
    requires: ['survivesRestart', 'reopen'],
    async run(context) {
      const { sandbox, create, started, waitFor } = context;
      const ready = await sandbox({ labels: { app: 'web', ['__proto__']: 'x' }, annotations: { note: 'n' } });
      const stopped = await sandbox();
      const created = await create(ready, { kind: 'run' }, { labels: { c: '1' } });
      const running = await started({ kind: 'run' }, {}, ready);
      const exited = await started({ kind: 'exit', code: 3 }, {}, ready);
      await waitFor(exited, 'exited');
      await context.runtime.stopPodSandbox(stopped);
      const look = async () => ({
        sandboxes: await Promise.all([ready, stopped].map((id) => context.runtime.podSandboxStatus(id))),
        containers: await Promise.all([created, running, exited].map((id) => context.runtime.containerStatus(id))),
        lists: [(await context.runtime.listPodSandboxes()).length, (await context.runtime.listContainers()).length],
      });
      const before = await look();
      await context.reopen();
      assert.deepEqual(await look(), before);
    },
  },
  {
    id: 'adopt.nothing-restarts',
    title: 'containers keep running while no engine is open, and are the same processes afterwards',
    requires: ['survivesRestart', 'reopen', 'shell', 'logs'],
    async run(context) {
      const { started, script, scratch, sandbox, until } = context;
      const logDirectory = await scratch();
      const text = 'echo start $$; i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done';
      const id = await started(script(text), { logPath: 'l.log' }, await sandbox({ logDirectory }));
      const { pid } = await context.runtime.containerStatus(id);
      await context.reopen();
      assert.equal((await context.runtime.containerStatus(id)).pid, pid);
      const length = async () => (await readLog(join(logDirectory, 'l.log'))).length;
      const then = await length();
      await until('the log goes on', async () => (await length()) > then + 3);
      const lines = joinLog(await readLog(join(logDirectory, 'l.log')), 'stdout')
        .toString()
        .trim()
        .split('\n');
      assert.match(lines.shift() ?? '', /^start \d+$/);
      assert.deepEqual(
        lines.map(Number),
        lines.map((_, index) => index + 1),
        'no line is missing and none comes twice',
      );
    },
  },
  {
    id: 'adopt.exit-meanwhile',
    title: 'a container that ends while no engine is open has its exit code and its time',
    requires: ['survivesRestart', 'reopen', 'shell'],
    async run(context) {
      const { started, script } = context;
      const id = await started(script('sleep 0.3; exit 11'));
      await context.reopen();
      const status = await context.waitFor(id, 'exited');
      assert.equal(status.exitCode, 11);
      assert(
        status.finishedAt !== undefined &&
          status.startedAt !== undefined &&
          status.finishedAt - status.startedAt < 15_000,
      );
    },
  },
  {
    id: 'adopt.stop-and-remove',
    title: 'adopted containers are stopped and removed like others',
    requires: ['survivesRestart', 'reopen'],
    async run(context) {
      const one = await context.started({ kind: 'run' });
      const two = await context.started({ kind: 'stubborn' });
      await context.reopen();
      await context.runtime.stopContainer(one, { gracePeriodMs: 20_000 });
      assert.equal((await context.runtime.containerStatus(one)).exitCode, 143);
      await context.runtime.removeContainer(two);
      await refused(context.runtime.containerStatus(two), 'NotFound');
    },
  },
  {
    id: 'adopt.created-can-be-started',
    title: 'a container that was only created can be started by the next engine',
    requires: ['survivesRestart', 'reopen'],
    async run(context) {
      const id = await context.create(await context.sandbox(), { kind: 'exit', code: 2 });
      await context.reopen();
      await context.runtime.startContainer(id);
      assert.equal((await context.waitFor(id, 'exited')).exitCode, 2);
    },
  },
  {
    id: 'adopt.exec-and-reopen',
    title: 'commands and log rotation work in adopted containers',
    requires: ['survivesRestart', 'reopen', 'shell', 'logs'],
    async run(context) {
      const sandboxId = await context.sandbox({ logDirectory: await context.scratch() });
      const env = [{ name: 'X', value: 'adopted' }];
      const id = await context.started({ kind: 'run' }, { env, logPath: 'l.log' }, sandboxId);
      await context.reopen();
      assert.equal(await context.exec(id, ['/bin/sh', '-c', 'echo $X']), 'adopted\n');
      await context.runtime.reopenContainerLog(id);
    },
  },
  {
    id: 'adopt.events',
    title: 'the end of an adopted container is reported',
    requires: ['survivesRestart', 'reopen', 'events'],
    async run(context) {
      const id = await context.started({ kind: 'run' });
      await context.reopen();
      const stream = context.runtime.events?.();
      assert(stream);
      await context.runtime.stopContainer(id, { gracePeriodMs: 0 });
      let last: RuntimeEvent | undefined;
      for await (const event of stream) {
        last = event;
        if (event.type !== 'resync') break;
      }
      assert.deepEqual(last?.type, 'containerExited');
    },
  },
  {
    id: 'adopt.same-names-are-still-taken',
    title: 'metadata of adopted sandboxes and containers cannot be used again',
    requires: ['survivesRestart', 'reopen'],
    async run(context) {
      const config = context.podConfig();
      const sandboxId = await context.runtime.runPodSandbox(config);
      const metadata = { name: 'web', attempt: 0 };
      await context.create(sandboxId, { kind: 'run' }, { metadata });
      await context.reopen();
      await refused(context.runtime.runPodSandbox(config), 'AlreadyExists');
      await refused(context.create(sandboxId, { kind: 'run' }, { metadata }), 'AlreadyExists');
    },
  },
  {
    id: 'adopt.images',
    title: 'pulled images still exist',
    requires: ['reopen', 'pullableImage'],
    async run(context) {
      const reference = context.harness.pullableImage ?? '';
      const id = await context.images.pullImage(reference);
      const image = await context.images.imageStatus(reference);
      await context.reopen();
      assert.deepEqual(await context.images.imageStatus(id), image);
    },
  },
  {
    id: 'adopt.streams-end-with-the-engine',
    title: 'event streams end when their engine is closed',
    requires: ['events', 'reopen'],
    async run(context) {
      const stream = context.runtime.events?.();
      assert(stream);
      const reading = (async () => {
        for await (const event of stream) assert.equal(event.type, 'resync');
      })();
      await context.reopen();
      await reading;
    },
  },
];
