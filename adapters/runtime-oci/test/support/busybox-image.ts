import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { buildRoot, dockerArchive, findProgram, installPrograms, tarOf } from '@keelson/test-support';

/** Requirements of containers that are missing on this machine; throws in continuous integration. */
export const missing = installPrograms(['runc', 'busybox'], ['runc', 'busybox-static']);

export const image = 'registry.test/busybox:1';
/** Missing before it is pulled. */
export const pullableImage = 'registry.test/app:1';
export const userImage = 'registry.test/user:1';

export interface ImageFolder {
  /** Source of the images. */
  readonly sources: string;
  remove(): void;
}

/** A folder with images of the shell of this machine and a static busybox: every tool that the suites use. */
export function buildImages(): ImageFolder {
  const folder = mkdtempSync('/tmp/keelson-oci-images-');
  const root = join(folder, 'root');
  mkdirSync(root);
  // The shell of the machine: that of busybox ignores SIGQUIT, and its children inherit that.
  buildRoot(root);
  mkdirSync(join(root, 'home'));
  chmodSync(join(root, 'tmp'), 0o1777);
  const busybox = findProgram('busybox') ?? '';
  copyFileSync(busybox, join(root, 'bin/busybox'));
  for (const name of execFileSync(busybox, ['--list'], { encoding: 'utf8' }).trim().split('\n')) {
    if (!existsSync(join(root, 'bin', name))) symlinkSync('busybox', join(root, 'bin', name));
  }
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\nstaff:x:4343:\nextra:x:5000:app\n');
  const sources = join(folder, 'sources');
  mkdirSync(sources);
  tarOf(root, join(folder, 'layer.tar'));
  dockerArchive(join(folder, 'one'), join(sources, 'busybox.tar'), image, [join(folder, 'layer.tar')]);
  dockerArchive(join(folder, 'three'), join(sources, 'app.tar'), pullableImage, [join(folder, 'layer.tar')], {
    Env: ['APP=1'],
  });
  const config = {
    User: 'app',
    Env: ['FROM_IMAGE=yes', 'PATH=/bin'],
    WorkingDir: '/home',
    Entrypoint: ['/bin/sh', '-c'],
    Cmd: ['id -u'],
  };
  dockerArchive(join(folder, 'two'), join(sources, 'user.tar'), userImage, [join(folder, 'layer.tar')], config);
  return { sources, remove: () => rmSync(folder, { recursive: true }) };
}
