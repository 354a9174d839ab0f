const alphabet = /^[A-Za-z0-9+/]*={0,2}$/;

/**
 * Standard base64 in its one canonical form: line breaks taken out, unused bits of the last character zero.
 * `undefined` when the text is not standard, padded base64. Takes time linear in the text, also for megabytes.
 */
export function canonicalBase64(text: string): string | undefined {
  const joined = text.includes('\n') || text.includes('\r') ? text.replace(/[\r\n]/g, '') : text;
  if (joined.length % 4 !== 0 || !alphabet.test(joined)) return undefined;
  if (!joined.endsWith('=')) return joined;
  const last = Buffer.from(joined.slice(-4), 'base64').toString('base64');
  return joined.endsWith(last) ? joined : joined.slice(0, -4) + last;
}
