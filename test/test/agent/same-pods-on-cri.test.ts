import { createCriRuntime } from '@keelson/runtime-cri';
import { Containerd, lackingForContainerd } from '@keelson/test-support';
import test from 'ava';
import { samePods } from '../../src/same-pods/same-pods.ts';

const lacking = lackingForContainerd();

if (lacking.length > 0) {
  test.skip(`the same pods on CRI [not run, there is no ${lacking.join(', ')}]`, () => {});
} else {
  samePods('cri', async () => {
    const containerd = await Containerd.start();
    const engine = await createCriRuntime({ endpoint: containerd.endpoint });
    const close = async () => {
      await engine.runtime[Symbol.asyncDispose]();
      await containerd[Symbol.asyncDispose]();
    };
    return { engine, image: containerd.busyboxImage, close };
  });
}
