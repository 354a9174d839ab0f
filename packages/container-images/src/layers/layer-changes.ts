/**
 * What a layer does besides adding files. Paths have no leading slash, dots or empty parts; the root itself is the
 * empty path.
 */
export interface LayerChanges {
  /** Removed from below. */
  readonly removed: string[];
  /** Folders of which nothing from below is left. */
  readonly opaque: string[];
  /** Hard links to files of the layers below, in the order of the archive. */
  readonly links: { readonly path: string; readonly target: string }[];
  /** Folders that the layer describes; others are there only because something is in them. */
  readonly folders: Set<string>;
}

export function noChanges(): LayerChanges {
  return { removed: [], opaque: [], links: [], folders: new Set() };
}

/** @throws Error for a path that leads out of the root */
export function cleanPath(name: string): string {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw new Error(`an entry leads out of the image: "${name.slice(0, 200)}"`);
  return parts.join('/');
}

const removalPrefix = '.wh.';
const opaqueMark = '.wh..wh..opq';
const reservedPrefix = '.wh..wh.';

/** True when the entry is a mark, not a file; what it says is noted. */
export function noteMark(path: string, changes: LayerChanges): boolean {
  const parts = path.split('/');
  const base = parts.pop() ?? '';
  const folder = parts.join('/');
  if (base === opaqueMark) {
    changes.opaque.push(folder);
    return true;
  }
  // Other reserved names are private to one kind of storage, with all that is below them.
  if ([...parts, base].some((part) => part.startsWith(reservedPrefix))) return true;
  if (!base.startsWith(removalPrefix)) return false;
  const victim = base.slice(removalPrefix.length);
  // A name made of dots would be the folder itself, or its parent.
  if (!/^\.{0,2}$/.test(victim)) changes.removed.push(folder === '' ? victim : `${folder}/${victim}`);
  return true;
}
