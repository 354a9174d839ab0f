import type { CelIssue } from './base/errors.ts';
import { type CelValue, maxUint, Uint } from './base/values.ts';

/** `text` is the token as written. `value` is set for literals of numbers, strings and bytes. */
export interface Token {
  readonly kind: 'ident' | 'literal' | 'operator' | 'end';
  readonly text: string;
  readonly position: number;
  readonly value?: CelValue;
}

/** A syntax error, at which parsing stops. */
export class SyntaxIssue extends Error implements CelIssue {
  readonly position: number;
  constructor(position: number, message: string) {
    super(message);
    this.position = position;
  }
}

const space = /[\t\n\f\r ]+|\/\/[^\n]*/y;
const identifier = /[_a-zA-Z][_a-zA-Z0-9]*/y;
const number = /0x[0-9a-fA-F]+u?|(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)|\d+[uU]?/y;
const operator = /==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()[\]{}]/y;
const stringStart = /([rR]?[bB]?|[bB][rR])("""|'''|"|')/y;

const simpleEscapes: Record<string, number> = {
  a: 7,
  b: 8,
  f: 12,
  n: 10,
  r: 13,
  t: 9,
  v: 11,
  '\\': 92,
  '?': 63,
  '"': 34,
  "'": 39,
  '`': 96,
};

const escapePattern =
  /\\(?:([abfnrtv\\?"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))/y;

/** Splits an expression into tokens. */
export class Lexer {
  readonly #source: string;
  #position = 0;

  constructor(source: string) {
    this.#source = source;
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#position;
    return pattern.exec(this.#source) ?? undefined;
  }

  next(): Token {
    for (let skipped = this.#match(space); skipped; skipped = this.#match(space)) this.#position += skipped[0].length;
    const position = this.#position;
    if (position >= this.#source.length) return { kind: 'end', text: '<EOF>', position };
    const text = this.#match(stringStart);
    if (text) return this.#string(text[1] ?? '', text[2] ?? '', text[0].length);
    const name = this.#match(identifier);
    if (name) return this.#take('ident', name[0]);
    const digits = this.#match(number);
    if (digits) return this.#take('literal', digits[0], numberValue(digits[0], position));
    const symbol = this.#match(operator);
    if (symbol) return this.#take('operator', symbol[0]);
    if (this.#source[position] === '`') throw new SyntaxIssue(position, "unsupported syntax: '`'");
    throw this.#unrecognized(position, position + 1);
  }

  #take(kind: Token['kind'], text: string, value?: CelValue): Token {
    const position = this.#position;
    this.#position += text.length;
    return { kind, text, position, ...(value === undefined ? {} : { value }) };
  }

  #unrecognized(start: number, end: number): SyntaxIssue {
    return new SyntaxIssue(start, `Syntax error: token recognition error at: '${this.#source.slice(start, end)}'`);
  }

  #string(prefix: string, quote: string, length: number): Token {
    const source = this.#source;
    const start = this.#position;
    const raw = /[rR]/.test(prefix);
    const bytes = /[bB]/.test(prefix);
    const points: number[] = [];
    let at = start + length;
    while (!source.startsWith(quote, at)) {
      const point = source.codePointAt(at);
      if (point === undefined || (quote.length === 1 && (point === 10 || point === 13))) {
        throw this.#unrecognized(start, at);
      }
      if (point !== 92 || raw) {
        if (bytes) points.push(...Buffer.from(String.fromCodePoint(point)));
        else points.push(point);
        at += point > 0xffff ? 2 : 1;
        continue;
      }
      escapePattern.lastIndex = at;
      const found = escapePattern.exec(source);
      const [whole, simple, hex, short, long, octal] = found ?? [];
      if (whole === undefined || (bytes && (short ?? long) !== undefined)) throw this.#unrecognized(start, at + 2);
      const code =
        simple === undefined
          ? Number.parseInt(octal ?? hex ?? short ?? long ?? '', octal === undefined ? 16 : 8)
          : (simpleEscapes[simple] ?? 0);
      if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        throw new SyntaxIssue(start, 'invalid unicode code point');
      }
      points.push(code);
      at += whole.length;
    }
    const end = at + quote.length;
    this.#position = end;
    const value = bytes ? Uint8Array.from(points) : textOf(points);
    return { kind: 'literal', text: source.slice(start, end), position: start, value };
  }
}

function textOf(points: readonly number[]): string {
  let text = '';
  for (let i = 0; i < points.length; i += 4096) text += String.fromCodePoint(...points.slice(i, i + 4096));
  return text;
}

/** The value of a number literal. Its range is checked later, because the sign is a separate token. */
function numberValue(text: string, position: number): CelValue {
  const last = text.at(-1) ?? '';
  if ((last === 'u' || last === 'U') && (text.startsWith('0x') || /^\d+[uU]$/.test(text))) {
    const value = BigInt(text.slice(0, -1));
    if (value > maxUint) throw new SyntaxIssue(position, 'invalid uint literal');
    return new Uint(value);
  }
  if (text.startsWith('0x') || /^\d+$/.test(text)) return BigInt(text);
  const value = Number(text);
  if (!Number.isFinite(value)) throw new SyntaxIssue(position, 'invalid double literal');
  return value;
}
