/**
 * Changes of a layer other than added files. Paths have no leading slash, no `.` and no empty components; the root is
 * the empty path.
 */
export interface LayerChanges {
  /** Paths that are removed from the lower layers. */
  readonly removed: string[];
  /** Folders whose content in the lower layers is removed. */
  readonly opaque: string[];
  /** Hard links to files of lower layers, in the order of the archive. */
  readonly links: { readonly path: string; readonly target: string }[];
  /** Folders with an entry in the layer. Other folders exist only as parents of entries. */
  readonly folders: Set<string>;
}

export function noChanges(): LayerChanges {
  return { removed: [], opaque: [], links: [], folders: new Set() };
}

/** Normalizes the path of an entry. @throws Error for a path outside of the root. */
export function cleanPath(name: string): string {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw new Error(`an entry is outside of the image: "${name.slice(0, 200)}"`);
  return parts.join('/');
}

const removalPrefix = '.wh.';
const opaqueMark = '.wh..wh..opq';
const reservedPrefix = '.wh..wh.';

/** Records a whiteout in `changes`; false for other entries. */
export function noteMark(path: string, changes: LayerChanges): boolean {
  const parts = path.split('/');
  const base = parts.pop() ?? '';
  const folder = parts.join('/');
  if (base === opaqueMark) {
    changes.opaque.push(folder);
    return true;
  }
  // Other reserved names, and everything below them, are private to a storage driver.
  if ([...parts, base].some((part) => part.startsWith(reservedPrefix))) return true;
  if (!base.startsWith(removalPrefix)) return false;
  const victim = base.slice(removalPrefix.length);
  // `.` and `..` would remove the folder itself or its parent.
  if (!/^\.{0,2}$/.test(victim)) changes.removed.push(folder === '' ? victim : `${folder}/${victim}`);
  return true;
}
