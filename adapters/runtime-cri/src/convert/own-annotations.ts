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
export const sandboxAnnotation = 'keelson.cri/sandbox';
export const containerAnnotation = 'keelson.cri/container';

export type TextMap = Readonly<Record<string, string>>;

/** Adds an annotation; an existing one of that name is replaced. */
export function withAnnotation(annotations: TextMap | undefined, name: string, value: string): TextMap {
  const all = { ...annotations };
  all[name] = value;
  return all;
}

/** The annotations without those of this adapter. */
export function withoutOwnAnnotations(annotations: TextMap | undefined): TextMap {
  if (annotations === undefined) return {};
  if (!(sandboxAnnotation in annotations) && !(containerAnnotation in annotations)) return annotations;
  return Object.fromEntries(
    Object.entries(annotations).filter(([key]) => key !== sandboxAnnotation && key !== containerAnnotation),
  );
}
