export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What a JSON text says if it is an object, else nothing. */
export function recordOf(json: string | undefined): Record<string, unknown> {
  if (json === undefined || json === '') return {};
  try {
    const value: unknown = JSON.parse(json);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

/**
 * Annotations in which this adapter keeps what CRI gives back in no other way. They are not shown to anybody, and let
 * the next process work with sandboxes and containers that this one made.
 */
export const sandboxNote = 'keelson.cri/sandbox';
export const containerNote = 'keelson.cri/container';

export type TextMap = Readonly<Record<string, string>>;

/** The annotations together with a note; a note of that name that somebody else wrote is replaced. */
export function withNote(annotations: TextMap | undefined, note: string, value: string): TextMap {
  const all = { ...annotations };
  all[note] = value;
  return all;
}

export function withoutNotes(annotations: TextMap | undefined): TextMap {
  if (annotations === undefined) return {};
  if (!(sandboxNote in annotations) && !(containerNote in annotations)) return annotations;
  return Object.fromEntries(
    Object.entries(annotations).filter(([key]) => key !== sandboxNote && key !== containerNote),
  );
}
