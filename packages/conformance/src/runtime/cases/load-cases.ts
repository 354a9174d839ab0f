import assert from 'node:assert/strict';
import type { RuntimeCase } from '../case-context.ts';

export const loadCases: readonly RuntimeCase[] = [
  {
    id: 'load.many-pods-at-once',
    title: 'many pods start concurrently, each with its own exit code, and are removed concurrently',
    async run({ harness, runtime, sandbox, started, waitFor }) {
      const codes = Array.from({ length: harness.loadPods ?? 30 }, (_, index) => index);
      const pods = await Promise.all(
        codes.map(async (code) => {
          const sandboxId = await sandbox();
          return { sandboxId, id: await started({ kind: 'exit', code }, {}, sandboxId) };
        }),
      );
      const ended = await Promise.all(pods.map(({ id }) => waitFor(id, 'exited')));
      assert.deepEqual(
        ended.map(({ exitCode }) => exitCode),
        codes,
      );
      await Promise.all(pods.map(({ sandboxId }) => runtime.removePodSandbox(sandboxId)));
      assert.deepEqual(await runtime.listContainers(), []);
      assert.deepEqual(await runtime.listPodSandboxes(), []);
    },
  },
  {
    id: 'load.crash-loop',
    title: 'many consecutive containers run in the same sandbox',
    isCommon: true,
    async run({ harness, runtime, commonSandbox, create, waitFor }) {
      const kept = Math.ceil((harness.loadPods ?? 30) / 3);
      const sandboxId = await commonSandbox();
      for (let attempt = 0; attempt < 2 * kept; attempt += 1) {
        const id = await create(sandboxId, { kind: 'exit', code: 1 }, { metadata: { name: 'web', attempt } });
        await runtime.startContainer(id);
        assert.equal((await waitFor(id, 'exited')).exitCode, 1);
        if (attempt % 2 === 0) await runtime.removeContainer(id);
      }
      assert.equal((await runtime.listContainers()).length, kept);
    },
  },
  {
    id: 'load.stop-and-remove-at-once',
    title: 'concurrent start, stop, removal and lists of one container end with its removal',
    async run({ runtime, sandbox, create }) {
      for (let round = 0; round < 5; round += 1) {
        const sandboxId = await sandbox();
        const id = await create(sandboxId, { kind: 'stubborn' });
        await Promise.allSettled([
          runtime.startContainer(id),
          runtime.stopContainer(id, { gracePeriodMs: 50 }),
          runtime.removeContainer(id),
          runtime.listContainers(),
          runtime.removePodSandbox(sandboxId),
        ]);
        await runtime.removePodSandbox(sandboxId);
        assert.deepEqual(await runtime.listContainers({ sandboxId }), []);
      }
    },
  },
];
