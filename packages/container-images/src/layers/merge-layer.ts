import { chmod, chown, link, lstat, mkdir, readdir, rename, rm, utimes } from 'node:fs/promises';
import { insideRoot, onDisk } from './inside-root.ts';
import type { LayerChanges } from './layer-changes.ts';

/**
 * Moves the files of an unpacked layer to `root`. Nothing outside of the two folders is modified, whatever their links
 * refer to. `onStep` is called for every entry, and cancels the merge by throwing.
 * @throws Error when the target of a hard link is missing
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

/** Creates a hard link in the layer, so that it is merged together with the other entries. */
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
  throw new Error(`the target of a hard link is missing: "${target.slice(0, 200)}"`);
}

interface Below {
  readonly root: string;
  readonly folders: ReadonlySet<string>;
  readonly onStep: () => void;
}

/** Merges a folder; `path` is its path in the layer. */
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
    // The layer has no entry for this folder, so a link in the lower layers is kept and followed.
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

/** Names in a folder; empty when it is not a folder. */
async function namesIn(folder: string): Promise<string[]> {
  const entry = await lstat(onDisk(folder)).catch(() => undefined);
  return entry?.isDirectory() ? readdir(onDisk(folder), { encoding: 'latin1' }) : [];
}

async function remove(path: string): Promise<void> {
  await rm(onDisk(path), { recursive: true, force: true });
}
