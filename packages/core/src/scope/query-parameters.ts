/**
 * Undoes percent encoding and `+`; undefined when a `%` is not followed by two hex digits or the bytes are not UTF-8.
 */
function decodeComponent(text: string): string | undefined {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return undefined;
  }
}

/**
 * The parameters of a query string: see docs/reference/api-rules.md#query-parameters. Names and values are
 * percent-decoded; a pair that cannot be decoded is ignored.
 */
export class QueryParameters {
  static readonly empty = new QueryParameters('');
  /** As it was sent, without the question mark. */
  readonly text: string;
  readonly #values = new Map<string, string[]>();

  constructor(text: string) {
    this.text = text;
    if (text === '') return;
    for (const pair of text.split('&')) {
      if (pair === '') continue;
      const equals = pair.indexOf('=');
      const name = decodeComponent(equals === -1 ? pair : pair.slice(0, equals));
      const value = equals === -1 ? '' : decodeComponent(pair.slice(equals + 1));
      if (name === undefined || value === undefined) continue;
      const values = this.#values.get(name);
      if (values === undefined) this.#values.set(name, [value]);
      else values.push(value);
    }
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** The first value, undefined when the parameter was not sent. */
  first(name: string): string | undefined {
    return this.#values.get(name)?.[0];
  }

  /** Every value in the order sent. */
  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  /**
   * The value of a boolean parameter; undefined when it was not sent. See docs/reference/api-rules.md#query-parameters.
   */
  boolean(name: string): boolean | undefined {
    const value = this.first(name);
    return value === undefined ? undefined : value !== '0' && value.toLowerCase() !== 'false';
  }
}
