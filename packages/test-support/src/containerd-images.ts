import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from './debian-packages.ts';

/** A root file system with a statically linked busybox under all its names. */
export function busyboxRoot(folder: string): void {
  const busybox = findProgram('busybox');
  if (busybox === undefined) throw new Error('there is no busybox');
  for (const name of ['bin', 'etc', 'tmp', 'root', 'proc', 'sys', 'dev', 'usr'])
    mkdirSync(join(folder, name), { recursive: true });
  copyFileSync(busybox, join(folder, 'bin', 'busybox'));
  for (const name of execFileSync(busybox, ['--list'], { encoding: 'utf8' }).trim().split('\n')) {
    if (name !== 'busybox') symlinkSync('busybox', join(folder, 'bin', name));
  }
  writeFileSync(join(folder, 'etc', 'passwd'), 'root:x:0:0::/root:/bin/sh\napp:x:4242:4343::/:/bin/sh\n');
  writeFileSync(join(folder, 'etc', 'group'), 'root:x:0:\napp:x:4343:\n');
  writeFileSync(join(folder, 'suite-file'), 'original\n');
}
