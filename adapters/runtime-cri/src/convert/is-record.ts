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
