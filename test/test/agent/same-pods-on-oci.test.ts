import { existsSync, readdirSync, rmdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createOciRuntime } from '@keelson/runtime-oci';
import { installPrograms } from '@keelson/test-support';
import test from 'ava';
import { buildBusyboxImages } from '../../src/busybox-image.ts';
import { samePods } from '../../src/same-pods/same-pods.ts';

const lacking = process.getuid?.() === 0 ? installPrograms(['runc', 'busybox'], ['runc', 'busybox-static']) : ['root'];
const image = 'registry.test/busybox:1';
const cgroupRoot = '/sys/fs/cgroup';

/** What the binary made above the cgroups of pods. Fails when one of those is left. */
function removeCgroups(parent: string): void {
  for (const hierarchy of ['', ...readdirSync(cgroupRoot)]) {
    const folder = join(cgroupRoot, hierarchy, parent);
    if (existsSync(folder)) rmdirSync(folder);
  }
}

if (lacking.length > 0) {
  test.skip(`the same pods on an OCI binary [not run, there is no ${lacking.join(', ')}]`, () => {});
} else {
  samePods('oci', async (folder) => {
    const sources = join(folder, 'sources');
    buildBusyboxImages(join(folder, 'image'), sources, [{ reference: image }]);
    const parent = `/${basename(folder)}`;
    const engine = await createOciRuntime({
      stateDirectory: join(folder, 'runtime'),
      imageSources: [sources],
      nodeIp: '192.0.2.1',
      cgroups: { parent },
    });
    const close = async () => {
      await engine.runtime[Symbol.asyncDispose]();
      removeCgroups(parent);
    };
    return { engine, image, close };
  });
}
