import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { type RuntimeCase, refused } from '../case-context.ts';

export const sandboxCases: readonly RuntimeCase[] = [
  {
    id: 'sandbox.run-makes-it-ready',
    title: 'a sandbox is ready when the call resolves, has an address, and is listed',
    async run({ runtime, sandbox }) {
      const id = await sandbox();
      const status = await runtime.podSandboxStatus(id);
      assert.equal(status.state, 'ready');
      assert.notEqual(isIP(status.ips[0] ?? ''), 0, `not an address: ${status.ips[0]}`);
      assert.deepEqual(
        (await runtime.listPodSandboxes()).map((entry) => entry.id),
        [id],
      );
    },
  },
  {
    id: 'sandbox.status-tells-what-was-configured',
    title: 'metadata, labels and annotations are returned unchanged, also with unusual keys',
    async run({ runtime, podConfig }) {
      const labels = { app: 'web', ['__proto__']: 'x', constructor: 'y', empty: '' };
      const annotations = { 'example.test/text': 'line one\nline "two" \u2713', big: 'z'.repeat(100_000) };
      const before = Date.now();
      const config = podConfig({ labels, annotations });
      const id = await runtime.runPodSandbox(config);
      const status = await runtime.podSandboxStatus(id);
      assert.deepEqual(status.metadata, config.metadata);
      assert.deepEqual({ ...status.labels }, labels);
      assert.deepEqual({ ...status.annotations }, annotations);
      assert(status.createdAt >= before - 1 && status.createdAt <= Date.now() + 1, 'createdAt is the time of the call');
    },
  },
  {
    id: 'sandbox.names-are-only-names',
    title: 'names that resemble paths or options have no special effect',
    async run({ runtime, podConfig, create }) {
      const metadata = { name: '../../x', namespace: '-rf', uid: '../../../tmp/$(touch x)', attempt: 0 };
      const id = await runtime.runPodSandbox(podConfig({ metadata }));
      await create(id, { kind: 'run' }, { metadata: { name: '../../../y;z', attempt: 0 } });
      assert.deepEqual((await runtime.podSandboxStatus(id)).metadata, metadata);
      await runtime.removePodSandbox(id);
      assert.deepEqual(await runtime.listPodSandboxes(), []);
    },
  },
  {
    id: 'sandbox.same-metadata-is-refused',
    title: 'a second sandbox with the same metadata is rejected, the next attempt is not',
    async run({ runtime, podConfig }) {
      const config = podConfig();
      const first = await runtime.runPodSandbox(config);
      await refused(runtime.runPodSandbox(config), 'AlreadyExists');
      const next = await runtime.runPodSandbox({ ...config, metadata: { ...config.metadata, attempt: 1 } });
      assert.notEqual(next, first);
    },
  },
  {
    id: 'sandbox.same-metadata-races',
    title: 'of ten concurrent requests for equal sandboxes, one succeeds',
    async run({ runtime, podConfig }) {
      const config = podConfig();
      const results = await Promise.allSettled(Array.from({ length: 10 }, () => runtime.runPodSandbox(config)));
      assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1);
      assert.equal((await runtime.listPodSandboxes()).length, 1);
    },
  },
  {
    id: 'sandbox.metadata-is-free-after-removal',
    title: 'metadata can be reused after the sandbox was removed, with another id',
    async run({ runtime, podConfig }) {
      const config = podConfig();
      const first = await runtime.runPodSandbox(config);
      await runtime.removePodSandbox(first);
      assert.notEqual(await runtime.runPodSandbox(config), first);
    },
  },
  {
    id: 'sandbox.stop-keeps-it-listed',
    title: 'a stopped sandbox exists, not ready and without an address',
    async run({ runtime, sandbox }) {
      const id = await sandbox();
      await runtime.stopPodSandbox(id);
      const status = await runtime.podSandboxStatus(id);
      assert.equal(status.state, 'notReady');
      assert.deepEqual(status.ips, []);
      assert.equal((await runtime.listPodSandboxes({ state: 'notReady' })).length, 1);
    },
  },
  {
    id: 'sandbox.stop-ends-its-containers',
    title: 'stopping a sandbox ends its containers, also those that ignore signals',
    async run({ runtime, sandbox, started }) {
      const id = await sandbox();
      const other = await started({ kind: 'run' });
      const containers = [await started({ kind: 'run' }, {}, id), await started({ kind: 'stubborn' }, {}, id)];
      await runtime.stopPodSandbox(id);
      for (const container of containers) assert.equal((await runtime.containerStatus(container)).state, 'exited');
      assert.equal((await runtime.containerStatus(other)).state, 'running', 'other pods are left alone');
    },
  },
  {
    id: 'sandbox.stop-is-idempotent',
    title: 'stopping a stopped or missing sandbox has no effect',
    async run({ runtime, sandbox }) {
      const id = await sandbox();
      await Promise.all([runtime.stopPodSandbox(id), runtime.stopPodSandbox(id)]);
      await runtime.stopPodSandbox(id);
      await runtime.removePodSandbox(id);
      await runtime.stopPodSandbox(id);
      await runtime.stopPodSandbox('no-such-sandbox');
    },
  },
  {
    id: 'sandbox.remove-removes-its-containers',
    title: 'removing a sandbox removes its containers in any state',
    async run({ runtime, sandbox, create, started, waitFor }) {
      const id = await sandbox();
      await create(id, { kind: 'run' });
      await started({ kind: 'stubborn' }, {}, id);
      await waitFor(await started({ kind: 'exit', code: 0 }, {}, id), 'exited');
      await runtime.removePodSandbox(id);
      assert.deepEqual(await runtime.listContainers(), []);
      await refused(runtime.podSandboxStatus(id), 'NotFound');
    },
  },
  {
    id: 'sandbox.remove-is-idempotent',
    title: 'a repeated removal, concurrent or later, or of a missing one, has no effect',
    async run({ runtime, sandbox, started }) {
      const id = await sandbox();
      await started({ kind: 'run' }, {}, id);
      await Promise.all([runtime.removePodSandbox(id), runtime.removePodSandbox(id), runtime.removePodSandbox(id)]);
      await runtime.removePodSandbox(id);
      await runtime.removePodSandbox('no-such-sandbox');
    },
  },
  {
    id: 'sandbox.status-of-what-is-not-there',
    title: 'the status of an unknown sandbox is an error, and a list of it is empty',
    async run({ runtime }) {
      await refused(runtime.podSandboxStatus('no-such-sandbox'), 'NotFound');
      assert.deepEqual(await runtime.listPodSandboxes({ id: 'no-such-sandbox' }), []);
    },
  },
  {
    id: 'sandbox.list-filters',
    title: 'lists are filtered by id, state and labels, combined, newest first',
    async run({ runtime, sandbox }) {
      const a = await sandbox({ labels: { app: 'a', tier: 'x' } });
      const b = await sandbox({ labels: { app: 'b', tier: 'x' } });
      await runtime.stopPodSandbox(b);
      const ids = async (filter?: Parameters<typeof runtime.listPodSandboxes>[0]) =>
        (await runtime.listPodSandboxes(filter)).map((entry) => entry.id);
      assert.deepEqual(await ids(), [b, a]);
      assert.deepEqual(await ids({ labels: { tier: 'x' } }), [b, a]);
      assert.deepEqual(await ids({ labels: { tier: 'x', app: 'a' } }), [a]);
      assert.deepEqual(await ids({ labels: { tier: 'x' }, state: 'ready' }), [a]);
      assert.deepEqual(await ids({ id: b, state: 'ready' }), []);
      assert.deepEqual(await ids({ labels: { constructor: 'x' } }), []);
    },
  },
  {
    id: 'sandbox.makes-the-log-directory',
    title: 'the log directory exists when the sandbox is ready',
    requires: ['logs'],
    async run({ sandbox, scratch }) {
      const logDirectory = join(await scratch(), 'pods', 'a', 'b');
      await sandbox({ logDirectory });
      assert((await stat(logDirectory)).isDirectory());
    },
  },
];
