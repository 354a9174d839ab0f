import { DocumentError, noteDuplicate, placeOf } from './document-error.ts';

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const comma = 0x2c;
const colon = 0x3a;

/**
 * Reads JSON strictly and slowly, to determine what `JSON.parse` does not report: the position of an error, and fields
 * that appear twice.
 * Nesting must have been limited before.
 */
export class JsonScanner {
  readonly #bytes: Buffer;
  readonly #duplicates: string[] = [];
  readonly #path: (string | number)[] = [];
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /**
   * Paths of repeated fields, in document order.
   *
   * @throws DocumentError `syntax`, naming line and column.
   */
  duplicateFields(): readonly string[] {
    this.#value();
    if (this.#skipSpace() !== -1) throw this.#unexpected('after the document');
    return this.#duplicates;
  }

  #value(): void {
    switch (this.#skipSpace()) {
      case openBrace:
        this.#object();
        break;
      case openBracket:
        this.#array();
        break;
      case quote:
        this.#string();
        break;
      case 0x74:
        this.#literal('true');
        break;
      case 0x66:
        this.#literal('false');
        break;
      case 0x6e:
        this.#literal('null');
        break;
      default:
        this.#number();
        break;
    }
  }

  #object(): void {
    this.#at++;
    if (this.#skipSpace() === closeBrace) {
      this.#at++;
      return;
    }
    const seen = new Set<string>();
    for (;;) {
      if (this.#skipSpace() !== quote) throw this.#unexpected('where a field name in quotes belongs');
      const start = this.#at;
      this.#string();
      const key = JSON.parse(this.#bytes.toString('utf8', start, this.#at)) as string;
      this.#path.push(key);
      if (seen.has(key)) noteDuplicate(this.#duplicates, this.#path);
      seen.add(key);
      if (this.#skipSpace() !== colon) throw this.#unexpected('where a colon belongs');
      this.#at++;
      this.#value();
      this.#path.pop();
      if (this.#separator(closeBrace)) return;
    }
  }

  #array(): void {
    this.#at++;
    if (this.#skipSpace() === closeBracket) {
      this.#at++;
      return;
    }
    for (let index = 0; ; index++) {
      this.#path.push(index);
      this.#value();
      this.#path.pop();
      if (this.#separator(closeBracket)) return;
    }
  }

  /** Steps over a comma (false) or the closing bracket (true). */
  #separator(close: number): boolean {
    const byte = this.#skipSpace();
    if (byte !== comma && byte !== close)
      throw this.#unexpected(`where a comma or ${String.fromCharCode(close)} belongs`);
    this.#at++;
    return byte === close;
  }

  #string(): void {
    const bytes = this.#bytes;
    let at = this.#at + 1;
    for (;;) {
      const byte = bytes[at];
      if (byte === quote) break;
      this.#at = at;
      if (byte === undefined || byte < 0x20) throw this.#unexpected('in a string');
      if (byte !== backslash) at++;
      else if (/^\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/.test(bytes.toString('latin1', at, at + 6)))
        at += bytes[at + 1] === 0x75 ? 6 : 2;
      else throw this.#unexpected('that begins no known escape');
    }
    this.#at = at + 1;
  }

  #literal(literal: string): void {
    for (let i = 0; i < literal.length; i++, this.#at++) {
      if (this.#bytes[this.#at] !== literal.charCodeAt(i)) throw this.#unexpected(`in the literal ${literal}`);
    }
  }

  #number(): void {
    const text = this.#bytes.toString('latin1', this.#at, this.#at + 400);
    const length = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/.exec(text)?.[0].length ?? 0;
    if (length === 0) throw this.#unexpected('where a value belongs');
    this.#at += length;
    // The number continues after the 400 bytes that were examined: skip the rest of it.
    if (length === text.length) while (isNumberByte(this.#bytes[this.#at] ?? 0)) this.#at++;
  }

  /** The next byte that is not white space; -1 at the end. */
  #skipSpace(): number {
    const bytes = this.#bytes;
    for (;;) {
      const byte = bytes[this.#at];
      if (byte === undefined) return -1;
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte;
      this.#at++;
    }
  }

  #unexpected(where: string): DocumentError {
    const byte = this.#bytes[this.#at];
    const what = byte === undefined ? 'unexpected end of input' : `invalid character ${shown(byte)}`;
    return new DocumentError('json', 'syntax', `${what} ${where} (${placeOf(this.#bytes, this.#at)})`);
  }
}

function shown(byte: number): string {
  return byte > 0x20 && byte < 0x7f ? `'${String.fromCharCode(byte)}'` : `0x${byte.toString(16).padStart(2, '0')}`;
}

/** True for bytes that a number literal can contain. */
export function isNumberByte(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || byte === 0x2e || byte === 0x2b || byte === 0x2d || (byte | 0x20) === 0x65;
}
