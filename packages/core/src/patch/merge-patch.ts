import { isJsonObject, type JsonObject, setOwn } from '../json/json.ts';

/**
 * Applies a JSON merge patch (RFC 7386): objects merge, null deletes, everything else replaces. The document stays as
 * it is; unchanged parts are shared, and the same object comes back when nothing changes. Any JSON value is a merge
 * patch, so it never fails.
 */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) return patch;
  const source = isJsonObject(document) ? document : undefined;
  let result: JsonObject | undefined;
  for (const key of Object.keys(patch)) {
    const wanted = patch[key];
    const present = source !== undefined && Object.hasOwn(source, key);
    if (wanted === null) {
      if (!present) continue;
      result ??= { ...source };
      delete result[key];
      continue;
    }
    const current = present ? source[key] : undefined;
    const merged = applyMergePatch(current, wanted);
    if (present && merged === current) continue;
    result ??= { ...source };
    setOwn(result, key, merged);
  }
  return result ?? source ?? {};
}
