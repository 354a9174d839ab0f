const warningValue = /(\d{3}) (?:[^ ",]+) "((?:[^"\\]|\\.)*)"(?: "[^"]*")?/g;

/**
 * The texts of all `Warning` headers with code 299; other codes concern caches. `rawHeaders` alternates names and
 * values.
 */
export function warningTexts(rawHeaders: readonly string[]): string[] {
  const texts: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() !== 'warning') continue;
    for (const [, code, text = ''] of (rawHeaders[at + 1] ?? '').matchAll(warningValue)) {
      if (code === '299') texts.push(text.replace(/\\(.)/g, '$1'));
    }
  }
  return texts;
}
