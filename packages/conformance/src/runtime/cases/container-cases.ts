import assert from 'node:assert/strict';
import { type RuntimeCase, refused } from '../case-context.ts';

export const containerCases: readonly RuntimeCase[] = [
  {
    id: 'container.create-runs-nothing',
    title: 'a created container has neither started nor ended',
    isCommon: true,
    async run({ runtime, commonSandbox, create }) {
      const id = await create(await commonSandbox(), { kind: 'run' });
      const status = await runtime.containerStatus(id);
      assert.equal(status.state, 'created');
      for (const field of ['startedAt', 'finishedAt', 'exitCode', 'pid'] as const)
        assert.equal(status[field], undefined, field);
    },
  },
  {
    id: 'container.status-tells-what-was-configured',
    title: 'metadata, labels, annotations and image are returned unchanged',
    isCommon: true,
    async run({ runtime, commonSandbox, containerConfig }) {
      const sandboxId = await commonSandbox();
      const labels = { app: 'web', ['__proto__']: 'x' };
      const config = containerConfig(
        { kind: 'run' },
        { labels, annotations: { note: 'a\nb' }, metadata: { name: 'web', attempt: 7 } },
      );
      const id = await runtime.createContainer(sandboxId, config);
      const status = await runtime.containerStatus(id);
      assert.equal(status.sandboxId, sandboxId);
      assert.deepEqual(status.metadata, { name: 'web', attempt: 7 });
      assert.deepEqual({ ...status.labels }, labels);
      assert.deepEqual(status.annotations, { note: 'a\nb' });
      assert.equal(status.image, config.image);
      assert.notEqual(status.imageId, '');
    },
  },
  {
    id: 'container.create-needs-its-sandbox',
    title: 'a container requires a sandbox that exists and is ready',
    async run({ runtime, sandbox, create }) {
      await refused(create('no-such-sandbox', { kind: 'run' }), 'NotFound');
      const id = await sandbox();
      await runtime.stopPodSandbox(id);
      await refused(create(id, { kind: 'run' }), 'InvalidState');
    },
  },
  {
    id: 'container.create-needs-its-image',
    title: 'a container of a missing image is rejected and leaves nothing behind',
    isCommon: true,
    async run({ runtime, commonSandbox, create, harness }) {
      const sandboxId = await commonSandbox();
      await refused(create(sandboxId, { image: harness.missingImage, command: ['/bin/true'] }), 'ImageNotFound');
      assert.deepEqual(await runtime.listContainers(), []);
    },
  },
  {
    id: 'container.same-metadata-is-refused',
    title: 'a second container with the same name and attempt is rejected, the next attempt is not',
    isCommon: true,
    async run({ commonSandbox, sandbox, create }) {
      const sandboxId = await commonSandbox();
      const metadata = { name: 'web', attempt: 0 };
      const first = await create(sandboxId, { kind: 'run' }, { metadata });
      await refused(create(sandboxId, { kind: 'run' }, { metadata }), 'AlreadyExists');
      assert.notEqual(await create(sandboxId, { kind: 'run' }, { metadata: { name: 'web', attempt: 1 } }), first);
      await create(await sandbox(), { kind: 'run' }, { metadata });
    },
  },
  {
    id: 'container.name-is-free-after-removal',
    title: 'name and attempt can be reused after the container was removed',
    isCommon: true,
    async run({ runtime, commonSandbox, create }) {
      const sandboxId = await commonSandbox();
      const metadata = { name: 'web', attempt: 0 };
      await runtime.removeContainer(await create(sandboxId, { kind: 'run' }, { metadata }));
      await create(sandboxId, { kind: 'run' }, { metadata });
    },
  },
  {
    id: 'container.refused-creation-frees-its-name',
    title: 'a rejected creation does not reserve the name',
    isCommon: true,
    async run({ commonSandbox, create, harness }) {
      const sandboxId = await commonSandbox();
      const metadata = { name: 'web', attempt: 0 };
      await refused(create(sandboxId, { image: harness.missingImage }, { metadata }), 'ImageNotFound');
      await create(sandboxId, { kind: 'run' }, { metadata });
    },
  },
  {
    id: 'container.start-runs-it',
    title: 'a started container runs and reports its start time',
    isCommon: true,
    async run({ runtime, started }) {
      const before = Date.now();
      const status = await runtime.containerStatus(await started({ kind: 'run' }));
      assert.equal(status.state, 'running');
      assert(
        status.startedAt !== undefined && status.startedAt >= before - 100 && status.startedAt <= Date.now() + 1,
        'startedAt',
      );
      assert(status.startedAt >= status.createdAt, 'started after it was created');
      assert.equal(status.exitCode, undefined);
      assert.equal(status.finishedAt, undefined);
    },
  },
  {
    id: 'container.starts-once',
    title: 'a container starts once: not while it runs, not after it ended, not after its removal',
    isCommon: true,
    async run({ runtime, started, waitFor }) {
      const id = await started({ kind: 'run' });
      await refused(runtime.startContainer(id), 'InvalidState');
      const ended = await started({ kind: 'exit', code: 0 });
      await waitFor(ended, 'exited');
      await refused(runtime.startContainer(ended), 'InvalidState');
      await runtime.removeContainer(id);
      await refused(runtime.startContainer(id), 'NotFound');
    },
  },
  {
    id: 'container.start-races',
    title: 'of five concurrent starts, one succeeds',
    isCommon: true,
    async run({ runtime, commonSandbox, create }) {
      const id = await create(await commonSandbox(), { kind: 'run' });
      const results = await Promise.allSettled(Array.from({ length: 5 }, () => runtime.startContainer(id)));
      assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1);
      assert.equal((await runtime.containerStatus(id)).state, 'running');
    },
  },
  {
    id: 'container.cannot-start',
    title: 'a process that cannot be started fails the start, and the container ends with the reason',
    isCommon: true,
    async run({ runtime, commonSandbox, create }) {
      const id = await create(await commonSandbox(), { kind: 'cannotStart' });
      await refused(runtime.startContainer(id), 'StartFailed');
      const status = await runtime.containerStatus(id);
      assert.equal(status.state, 'exited');
      assert.equal(status.reason, 'StartError');
      assert.notEqual(status.exitCode, 0);
      assert.notEqual(status.message ?? '', '');
      await runtime.removeContainer(id);
    },
  },
  {
    id: 'container.exit-of-success',
    title: 'exit code 0 is Completed, with both times in order',
    isCommon: true,
    async run({ started, waitFor }) {
      const status = await waitFor(await started({ kind: 'exit', code: 0, afterMs: 50 }), 'exited');
      assert.equal(status.exitCode, 0);
      assert.equal(status.reason, 'Completed');
      assert.equal(status.signal, undefined);
      assert(
        status.startedAt !== undefined && status.finishedAt !== undefined && status.finishedAt >= status.startedAt,
        'times',
      );
      assert(status.finishedAt <= Date.now() + 1, 'ended in the past');
    },
  },
  {
    id: 'container.exit-codes',
    title: 'every other exit code is an Error and is reported unchanged',
    isCommon: true,
    async run({ commonSandbox, started, waitFor }) {
      const sandboxId = await commonSandbox();
      const codes = [1, 2, 42, 126, 127, 128, 255];
      const ids = await Promise.all(codes.map((code) => started({ kind: 'exit', code }, {}, sandboxId)));
      for (const [position, id] of ids.entries()) {
        const status = await waitFor(id, 'exited');
        assert.equal(status.exitCode, codes[position]);
        assert.equal(status.reason, 'Error');
      }
    },
  },
  {
    id: 'container.exited-stays',
    title: 'an ended container exists until it is removed',
    isCommon: true,
    async run({ runtime, started, waitFor }) {
      const id = await started({ kind: 'exit', code: 3 });
      const first = await waitFor(id, 'exited');
      assert.deepEqual(await runtime.containerStatus(id), first);
      assert.deepEqual(
        (await runtime.listContainers({ state: 'exited' })).map((entry) => entry.id),
        [id],
      );
    },
  },
  {
    id: 'container.remove-is-final',
    title: 'removing a container ends it and removes it from all lists',
    isCommon: true,
    async run({ runtime, started }) {
      const id = await started({ kind: 'stubborn' });
      await runtime.removeContainer(id);
      await refused(runtime.containerStatus(id), 'NotFound');
      assert.deepEqual(await runtime.listContainers(), []);
      assert.deepEqual(await runtime.listContainerStats(), []);
    },
  },
  {
    id: 'container.remove-is-idempotent',
    title: 'a repeated removal, concurrent or later, or of a missing one, has no effect',
    isCommon: true,
    async run({ runtime, started }) {
      const id = await started({ kind: 'run' });
      await Promise.all([runtime.removeContainer(id), runtime.removeContainer(id)]);
      await runtime.removeContainer(id);
      await runtime.removeContainer('no-such-container');
    },
  },
  {
    id: 'container.list-filters',
    title: 'lists are filtered by id, state, sandbox and labels, combined, newest first',
    isCommon: true,
    async run({ runtime, commonSandbox, sandbox, create, started }) {
      const one = await commonSandbox();
      const two = await sandbox();
      const a = await create(one, { kind: 'run' }, { labels: { app: 'a' } });
      const b = await started({ kind: 'run' }, { labels: { app: 'b' } }, one);
      const c = await started({ kind: 'run' }, { labels: { app: 'a' } }, two);
      const ids = async (filter?: Parameters<typeof runtime.listContainers>[0]) =>
        (await runtime.listContainers(filter)).map((entry) => entry.id);
      assert.deepEqual(await ids(), [c, b, a]);
      assert.deepEqual(await ids({ sandboxId: one }), [b, a]);
      assert.deepEqual(await ids({ state: 'running' }), [c, b]);
      assert.deepEqual(await ids({ labels: { app: 'a' } }), [c, a]);
      assert.deepEqual(await ids({ labels: { app: 'a' }, state: 'running', sandboxId: two }), [c]);
      assert.deepEqual(await ids({ id: a, state: 'running' }), []);
      assert.deepEqual(await ids({ sandboxId: 'no-such-sandbox' }), []);
    },
  },
  {
    id: 'container.ends-alone',
    title: 'the end of one container does not affect other containers and the sandbox',
    isCommon: true,
    async run({ runtime, commonSandbox, started, waitFor }) {
      const sandboxId = await commonSandbox();
      const neighbour = await started({ kind: 'run' }, {}, sandboxId);
      await waitFor(await started({ kind: 'exit', code: 1 }, {}, sandboxId), 'exited');
      assert.equal((await runtime.containerStatus(neighbour)).state, 'running');
      assert.equal((await runtime.podSandboxStatus(sandboxId)).state, 'ready');
    },
  },
  {
    id: 'container.update-resources',
    title: 'resources of a running container can be changed and are reported in its status',
    requires: ['updateResources'],
    isCommon: true,
    async run({ runtime, started, waitFor }) {
      const id = await started({ kind: 'run' }, { resources: { cpuShares: 512 } });
      await runtime.updateContainerResources?.(id, { cpuShares: 256 });
      assert.equal((await runtime.containerStatus(id)).resources.cpuShares, 256);
      const ended = await started({ kind: 'exit', code: 0 });
      await waitFor(ended, 'exited');
      await refused(Promise.resolve(runtime.updateContainerResources?.(ended, { cpuShares: 2 })), 'InvalidState');
      await refused(Promise.resolve(runtime.updateContainerResources?.('no-such-container', {})), 'NotFound');
    },
  },
];
