const metadataStart = Buffer.from('"metadata":{');
/** Maximum offset of `metadata` in canonical JSON. Only `kind` and `apiVersion` precede it, and they are shorter. */
const maxHeadBytes = 512;
const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/**
 * Where `metadata` lies in canonical JSON, braces included, found without parsing. `undefined` when the JSON is not
 * canonical.
 */
export function metadataRange(json: Buffer): { readonly start: number; readonly end: number } | undefined {
  const at = json.indexOf(metadataStart);
  if (at === -1 || at > maxHeadBytes) return undefined;
  const inside = at + metadataStart.length;
  let depth = 1;
  for (let i = inside; i < json.length; i++) {
    const byte = json[i];
    if (byte === quote) i = stringEnd(json, i + 1);
    else if (byte === openBrace) depth++;
    else if (byte === closeBrace && --depth === 0) return { start: inside - 1, end: i + 1 };
  }
  return undefined;
}

/**
 * Index of the quote that ends a string whose content begins at `from`. Strings are short: a loop is faster than
 * `indexOf`.
 */
function stringEnd(json: Buffer, from: number): number {
  let i = from;
  while (i < json.length && json[i] !== quote) i += json[i] === backslash ? 2 : 1;
  return i;
}
