import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { buildRoot, dockerArchive, findProgram, tarOf } from '@keelson/test-support';

export interface BusyboxImage {
  readonly reference: string;
  /** The configuration of the image: user, command and so on. */
  readonly config?: object;
}

/** Archives of images of this machine's shell and a static busybox, one for each reference. */
export function buildBusyboxImages(folder: string, sources: string, images: readonly BusyboxImage[]): void {
  const root = join(folder, 'root');
  mkdirSync(root, { recursive: true });
  mkdirSync(sources, { recursive: true });
  // Its shell, not that of busybox, which ignores SIGQUIT and hands that down.
  buildRoot(root);
  chmodSync(join(root, 'tmp'), 0o1777);
  const busybox = findProgram('busybox') ?? '';
  copyFileSync(busybox, join(root, 'bin/busybox'));
  for (const name of execFileSync(busybox, ['--list'], { encoding: 'utf8' }).trim().split('\n')) {
    if (!existsSync(join(root, 'bin', name))) symlinkSync('busybox', join(root, 'bin', name));
  }
  const layer = join(folder, 'layer.tar');
  tarOf(root, layer);
  for (const [position, { reference, config }] of images.entries()) {
    const name = `image-${position}`;
    dockerArchive(join(folder, name), join(sources, `${name}.tar`), reference, [layer], config);
  }
}
