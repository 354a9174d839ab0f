import { chmod, chown, link, lstat, mkdir, readdir, rename, rm, utimes } from 'node:fs/promises';
import { insideRoot, onDisk } from './inside-root.ts';
import type { LayerChanges } from './layer-changes.ts';

/**
 * Puts an unpacked layer on top of `root`; `layer` is used up. Nothing outside of the two is touched, wherever links in
 * them lead. `onStep` is called for every entry that is put in its place, and may end it by throwing. @throws Error
 * when a hard link has no target
 */
export async function mergeLayer(layer: string, root: string, changes: LayerChanges, onStep = () => {}): Promise<void> {
  for (const entry of changes.links) await addLink(layer, root, entry.path, entry.target);
  const hidden = changes.folders;
  for (const path of changes.opaque) {
    const folder = await insideRoot(root, path, { hidden });
    if (folder === undefined) continue;
    for (const name of await namesIn(folder)) await remove(`${folder}/${name}`);
  }
  for (const path of changes.removed) {
    const [folder, base] = split(path);
    const place = await insideRoot(root, folder, { hidden });
    if (place !== undefined) await remove(`${place}/${base}`);
  }
  await mergeFolder(layer, root, '', { root, folders: changes.folders, onStep });
}

/** The link is put into the layer, so that it takes its place together with the rest. */
async function addLink(layer: string, root: string, path: string, target: string): Promise<void> {
  const [folder, base] = split(path);
  const [targetFolder, targetBase] = split(target);
  const place = await insideRoot(layer, folder);
  if (place === undefined) return;
  await mkdir(onDisk(place), { recursive: true, mode: 0o755 });
  for (const origin of [layer, root]) {
    const from = await insideRoot(origin, targetFolder);
    if (from === undefined || !(await exists(`${from}/${targetBase}`))) continue;
    await remove(`${place}/${base}`);
    await link(onDisk(`${from}/${targetBase}`), onDisk(`${place}/${base}`));
    return;
  }
  throw new Error(`a hard link has no target: "${target.slice(0, 200)}"`);
}

interface Below {
  readonly root: string;
  readonly folders: ReadonlySet<string>;
  readonly onStep: () => void;
}

/** `path` is that of the folder in the layer. */
async function mergeFolder(source: string, target: string, path: string, below: Below): Promise<void> {
  const entry = await lstat(onDisk(source));
  for (const name of await namesIn(source)) {
    below.onStep();
    const child = path === '' ? name : `${path}/${name}`;
    await place(`${source}/${name}`, `${target}/${name}`, child, below);
  }
  if (!below.folders.has(path)) return;
  await chown(onDisk(target), entry.uid, entry.gid);
  await chmod(onDisk(target), entry.mode & 0o7777);
  await utimes(onDisk(target), entry.atime, entry.mtime);
}

async function place(source: string, target: string, path: string, below: Below): Promise<void> {
  const entry = await lstat(onDisk(source));
  const present = await lstat(onDisk(target)).catch(() => undefined);
  if (entry.isDirectory() && present?.isDirectory()) return mergeFolder(source, target, path, below);
  if (entry.isDirectory() && present?.isSymbolicLink() && !below.folders.has(path)) {
    // The layer only has something in the folder; it does not say that the link is to become one.
    const inside = await insideRoot(below.root, target.slice(below.root.length + 1));
    if (inside !== undefined) {
      await mkdir(onDisk(inside), { recursive: true, mode: 0o755 });
      return mergeFolder(source, inside, path, below);
    }
  }
  if (present !== undefined && (entry.isDirectory() || present.isDirectory())) await remove(target);
  await rename(onDisk(source), onDisk(target));
}

function split(path: string): [folder: string, base: string] {
  const slash = path.lastIndexOf('/');
  return slash < 0 ? ['', path] : [path.slice(0, slash), path.slice(slash + 1)];
}

async function exists(path: string): Promise<boolean> {
  return (await lstat(onDisk(path)).catch(() => undefined)) !== undefined;
}

/** Nothing when it is no folder. */
async function namesIn(folder: string): Promise<string[]> {
  const entry = await lstat(onDisk(folder)).catch(() => undefined);
  return entry?.isDirectory() ? readdir(onDisk(folder), { encoding: 'latin1' }) : [];
}

async function remove(path: string): Promise<void> {
  await rm(onDisk(path), { recursive: true, force: true });
}
