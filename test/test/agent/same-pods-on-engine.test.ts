import { join } from 'node:path';
import { createEngineRuntime } from '@keelson/runtime-engine';
import { lackingForPodman, Podman } from '@keelson/test-support';
import test from 'ava';
import { samePods } from '../../src/same-pods/same-pods.ts';

const lacking = lackingForPodman();

if (lacking.length > 0) {
  test.skip(`the same pods on an engine [not run, there is no ${lacking.join(', ')}]`, () => {});
} else {
  samePods(
    'engine',
    async (folder) => {
      const podman = await Podman.open();
      const engine = await createEngineRuntime({
        endpoint: podman.endpoint,
        infraImage: podman.pauseImage,
        stateDirectory: join(folder, 'engine'),
        owner: 'same',
      });
      const close = async () => {
        await engine.runtime[Symbol.asyncDispose]();
        await podman[Symbol.asyncDispose]();
      };
      return { engine, image: podman.busyboxImage, close };
    },
    { atOnce: 3 },
  );
}
