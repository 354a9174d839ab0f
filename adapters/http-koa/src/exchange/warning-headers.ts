/** Greatest total length of all header values, as in kube-apiserver. */
const maxTotal = 4096;
/** Length to which each text is truncated when the total is exceeded. */
const maxCutText = 256;
/** Greatest number of headers: Python's HTTP client rejects responses with more than a hundred headers in total. */
const maxHeaders = 50;

const omitted = '299 - "further warnings were omitted"';

/**
 * The `Warning` headers of one response, each text once. Their number and total length are limited, because clients and
 * proxies reject responses with large heads, and a rejected response may belong to a write that has happened.
 */
export class WarningHeaders {
  readonly #texts = new Set<string>();
  #full = false;

  add(text: string): void {
    if (text === '' || this.#full) return;
    this.#texts.add(text);
    // With more than `maxHeaders` texts some are omitted in any case, so that no further ones are collected.
    this.#full = this.#texts.size > maxHeaders;
  }

  /**
   * Values of the headers. Texts are truncated only where the limits require it; the last value states that texts were
   * omitted.
   */
  values(): string[] {
    const whole = [...this.#texts].map(headerValue);
    if (lengthOf(whole) <= maxTotal && whole.length <= maxHeaders) return whole;
    const values: string[] = [];
    let room = maxTotal - omitted.length;
    for (const text of this.#texts) {
      const value = headerValue(text.slice(0, maxCutText));
      room -= value.length;
      if (room < 0 || values.length === maxHeaders - 1) return [...values, omitted];
      values.push(value);
    }
    return values;
  }
}

function lengthOf(values: readonly string[]): number {
  return values.reduce((sum, value) => sum + value.length, 0);
}

/**
 * Code 299 and a quoted-string of RFC 7230; control characters become `?`. The text is sent as UTF-8: each character of
 * the result is one byte, because Node writes header values as Latin-1.
 */
function headerValue(text: string): string {
  const quoted = text.replace(/[^\x20-\x7e\u0080-\uffff]/g, '?').replace(/["\\]/g, '\\$&');
  return `299 - "${Buffer.from(quoted).toString('latin1')}"`;
}
