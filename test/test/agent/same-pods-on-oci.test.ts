import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, rmdirSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createOciRuntime } from '@keelson/runtime-oci';
import { buildRoot, dockerArchive, findProgram, installPrograms, tarOf } from '@keelson/test-support';
import test from 'ava';
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

/** An image of this machine's shell and a static busybox. */
function buildImage(folder: string, sources: string): void {
  const root = join(folder, 'root');
  mkdirSync(root, { recursive: true });
  mkdirSync(sources);
  buildRoot(root);
  chmodSync(join(root, 'tmp'), 0o1777);
  const busybox = findProgram('busybox') ?? '';
  copyFileSync(busybox, join(root, 'bin/busybox'));
  for (const name of execFileSync(busybox, ['--list'], { encoding: 'utf8' }).trim().split('\n')) {
    if (!existsSync(join(root, 'bin', name))) symlinkSync('busybox', join(root, 'bin', name));
  }
  const layer = join(folder, 'layer.tar');
  tarOf(root, layer);
  dockerArchive(join(folder, 'archive'), join(sources, 'busybox.tar'), image, [layer]);
}

if (lacking.length > 0) {
  test.skip(`the same pods on an OCI binary [not run, there is no ${lacking.join(', ')}]`, () => {});
} else {
  samePods('oci', async (folder) => {
    const sources = join(folder, 'sources');
    buildImage(join(folder, 'image'), sources);
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
