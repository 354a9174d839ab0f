import { chmod, chown, lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { RuntimeError } from '@keelson/container-runtime';
import { tryTool } from '../machine/run-tool.ts';

const removalPrefix = '.wh.';
const opaqueMark = '.wh..wh..opq';

/**
 * Puts a layer on top of `root`. The layer is unpacked into a folder of its own first, where `tar` keeps it from leading out through
 * links of its own, and merged by renaming, which never follows links of the layers below. @throws `PullFailed`
 */
export async function applyLayer(layer: string, root: string, scratch: string, signal?: AbortSignal): Promise<void> {
  await mkdir(scratch);
  const args = [
    '-xpf',
    layer,
    '-C',
    scratch,
    '--numeric-owner',
    '--same-owner',
    '--xattrs',
    '--xattrs-include=*',
    '--delay-directory-restore',
  ];
  const problem = await tryTool('tar', args, signal);
  if (problem !== undefined) throw new RuntimeError('PullFailed', `cannot unpack a layer: ${problem}`);
  await merge(scratch, root);
  await rm(scratch, { recursive: true, force: true });
}

async function merge(from: string, to: string): Promise<void> {
  const names = await readdir(from);
  if (names.includes(opaqueMark)) {
    for (const name of await readdir(to)) await rm(join(to, name), { recursive: true, force: true });
  }
  for (const name of names) {
    if (!name.startsWith(removalPrefix) || name === opaqueMark) continue;
    const victim = name.slice(removalPrefix.length);
    // A name made of dots would be the folder itself, or its parent.
    if (!/^\.{0,2}$/.test(victim)) await rm(join(to, victim), { recursive: true, force: true });
  }
  for (const name of names) {
    if (name.startsWith(removalPrefix)) continue;
    await place(join(from, name), join(to, name));
  }
}

async function place(source: string, target: string): Promise<void> {
  const entry = await lstat(source);
  const present = await lstat(target).catch(() => undefined);
  if (entry.isDirectory()) {
    if (present !== undefined && !present.isDirectory()) await rm(target, { force: true });
    if (present === undefined || !present.isDirectory()) await mkdir(target);
    await merge(source, target);
    await chown(target, entry.uid, entry.gid);
    await chmod(target, entry.mode & 0o7777);
    return;
  }
  if (present?.isDirectory()) await rm(target, { recursive: true, force: true });
  await rename(source, target);
}
