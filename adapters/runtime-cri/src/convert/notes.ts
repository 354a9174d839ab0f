import { isJsonObject } from '@keelson/core/internal';

/** Parses a JSON object; the result is empty for any other text. */
export function recordOf(json: string | undefined): Record<string, unknown> {
  if (json === undefined || json === '') return {};
  try {
    const value: unknown = JSON.parse(json);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

/**
 * Annotations in which this adapter stores data that CRI does not return otherwise. Later processes restore sandboxes
 * and containers from them. They are removed from the annotations that callers receive.
 */
export const sandboxNote = 'keelson.cri/sandbox';
export const containerNote = 'keelson.cri/container';

export type TextMap = Readonly<Record<string, string>>;

/** Adds a note to the annotations; an existing annotation of that name is replaced. */
export function withNote(annotations: TextMap | undefined, note: string, value: string): TextMap {
  const all = { ...annotations };
  all[note] = value;
  return all;
}

/** Removes the notes of this adapter from the annotations. */
export function withoutNotes(annotations: TextMap | undefined): TextMap {
  if (annotations === undefined) return {};
  if (!(sandboxNote in annotations) && !(containerNote in annotations)) return annotations;
  return Object.fromEntries(
    Object.entries(annotations).filter(([key]) => key !== sandboxNote && key !== containerNote),
  );
}
