import { type LabelOperator, type LabelRequirement, labelRequirement } from './label-requirement.ts';
import { maxRequirements, maxSelectorLength, SelectorError } from './selector-error.ts';

/** A token of a label selector. `end` has no text. */
export interface LabelToken {
  readonly type: 'word' | 'operator' | 'end';
  readonly text: string;
}

const token = /[ \t\r\n]*(?:([^ \t\r\n=!(),<>]+)|(==|!=|[=!(),<>]))?/y;

/** Splits a selector into tokens, without white space. The last token is `end`. */
export function labelTokens(text: string): LabelToken[] {
  const tokens: LabelToken[] = [];
  token.lastIndex = 0;
  while (token.lastIndex < text.length) {
    const [, word, operator] = token.exec(text) ?? [];
    if (word !== undefined) tokens.push({ type: 'word', text: word });
    else if (operator !== undefined) tokens.push({ type: 'operator', text: operator });
  }
  tokens.push({ type: 'end', text: '' });
  return tokens;
}

const comparisons: ReadonlyMap<string, LabelOperator> = new Map([
  ['=', 'In'],
  ['==', 'In'],
  ['!=', 'NotIn'],
  ['>', 'Gt'],
  ['<', 'Lt'],
  ['in', 'In'],
  ['notin', 'NotIn'],
]);

function isSetWord({ type, text }: LabelToken): boolean {
  return type === 'word' && (text === 'in' || text === 'notin');
}

function unexpected(found: LabelToken, expected: string): SelectorError {
  return new SelectorError(`found '${found.text}', expected: ${expected}`);
}

/**
 * Parses the tokens of a label selector, one requirement after the other: see
 * docs/reference/api-rules.md#label-selectors.
 */
class LabelSelectorParser {
  readonly #tokens: readonly LabelToken[];
  #next = 0;

  constructor(text: string) {
    this.#tokens = labelTokens(text);
  }

  peek(): LabelToken {
    return this.#tokens[this.#next] ?? { type: 'end', text: '' };
  }

  #take(): LabelToken {
    const token = this.peek();
    this.#next += 1;
    return token;
  }

  #is(operator: string): boolean {
    const token = this.peek();
    return token.type === 'operator' && token.text === operator;
  }

  /** True at the end of the text, or of one requirement. */
  #atEnd(): boolean {
    return this.peek().type === 'end' || this.#is(',');
  }

  requirement(): LabelRequirement {
    const negated = this.#is('!');
    if (negated) this.#take();
    const key = this.#take();
    if (key.type !== 'word') throw unexpected(key, 'identifier');
    if (negated) return labelRequirement(key.text, 'DoesNotExist', []);
    if (this.#atEnd()) return labelRequirement(key.text, 'Exists', []);
    const operator = this.#take();
    const meaning = comparisons.get(operator.text);
    if (meaning === undefined) throw unexpected(operator, 'in, notin, =, ==, !=, gt, lt');
    return labelRequirement(key.text, meaning, isSetWord(operator) ? this.#set() : [this.#value()]);
  }

  /** After a requirement: true when another follows. */
  more(): boolean {
    if (this.peek().type === 'end') return false;
    const comma = this.#take();
    if (comma.text !== ',') throw unexpected(comma, "',' or 'end of string'");
    const after = this.peek();
    if (after.type === 'word' || this.#is('!')) return true;
    throw unexpected(after, "identifier after ','");
  }

  #value(): string {
    if (this.#atEnd()) return '';
    const value = this.#take();
    if (value.type !== 'word') throw unexpected(value, 'identifier');
    return value.text;
  }

  /** `(a,b)`; nothing between two delimiters is the empty value. */
  #set(): string[] {
    if (!this.#is('(')) throw unexpected(this.peek(), "'('");
    this.#take();
    const values: string[] = [];
    for (;;) {
      values.push(this.peek().type === 'word' ? this.#take().text : '');
      const delimiter = this.#take();
      if (delimiter.text === ')') return values;
      if (delimiter.text !== ',') throw unexpected(delimiter, "',', or ')'");
    }
  }
}

function parseAll(text: string): LabelRequirement[] {
  const parser = new LabelSelectorParser(text);
  const requirements: LabelRequirement[] = [];
  const first = parser.peek();
  if (first.type === 'end') return requirements;
  if (first.type !== 'word' && first.text !== '!') throw unexpected(first, "!, identifier, or 'end of string'");
  do {
    if (requirements.length === maxRequirements) throw new SelectorError(`more than ${maxRequirements} requirements`);
    requirements.push(parser.requirement());
  } while (parser.more());
  return requirements;
}

/**
 * The requirements of a selector's text; the empty text has none.
 *
 * @throws SelectorError when the text is no selector, longer than 8 KiB or of more than 100 requirements.
 */
export function parseLabelRequirements(text: string): LabelRequirement[] {
  if (text.length > maxSelectorLength) {
    throw new SelectorError(`unable to parse requirement: the selector is longer than ${maxSelectorLength} characters`);
  }
  try {
    return parseAll(text);
  } catch (error) {
    if (error instanceof SelectorError) throw new SelectorError(`unable to parse requirement: ${error.message}`);
    throw error;
  }
}
