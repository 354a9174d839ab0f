import type { RE2JS } from 're2js';
import { re2 } from '../../cel/library/regex.ts';

/** Maximum work for all patterns of one object, in characters of the text times characters of the pattern. */
export const maxPatternWork = 20_000_000;

/** A regular expression in the syntax of RE2, which is matched in a time proportional to the length of the text. */
export class Pattern {
  readonly source: string;
  #compiled: RE2JS | undefined;

  constructor(source: string) {
    this.source = source;
  }

  /** The reason why the source is no regular expression. */
  get problem(): string | undefined {
    try {
      this.#regexp();
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  work(text: string): number {
    return text.length * this.source.length;
  }

  matches(text: string): boolean {
    return this.#regexp().test(text);
  }

  #regexp(): RE2JS {
    this.#compiled ??= re2().RE2JS.compile(this.source);
    return this.#compiled;
  }
}
