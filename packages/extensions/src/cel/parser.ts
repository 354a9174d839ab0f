import { type Element, type Entry, type Expression, expression } from './ast.ts';
import { CelCompileError } from './base/errors.ts';
import { maxInt } from './base/values.ts';
import { Lexer, SyntaxIssue, type Token } from './lexer.ts';
import { expandMacro } from './macros.ts';

/** Maximum length of an expression in UTF-16 code units. */
const maxSource = 100_000;
/** Maximum nesting depth, because the evaluation is recursive. */
const maxDepth = 250;

const reserved = new Set(
  'as break const continue else for function if import let loop package namespace return var void while'.split(' '),
);

const operand =
  "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

const precedence: readonly (readonly string[])[] = [
  ['==', '!=', '<', '<=', '>', '>=', 'in'],
  ['+', '-'],
  ['*', '/', '%'],
];

class Parser {
  readonly #lexer: Lexer;
  #token: Token;
  #depth = 0;

  constructor(source: string) {
    this.#lexer = new Lexer(source);
    this.#token = this.#lexer.next();
  }

  parse(): Expression {
    const root = this.#expression();
    if (this.#token.kind !== 'end') throw this.#unexpected('extraneous input', '<EOF>');
    return root;
  }

  #unexpected(what: string, expecting: string): SyntaxIssue {
    const { text, position } = this.#token;
    return new SyntaxIssue(position, `Syntax error: ${what} '${text}' expecting ${expecting}`);
  }

  #advance(): Token {
    const token = this.#token;
    this.#token = this.#lexer.next();
    return token;
  }

  #is(text: string): boolean {
    return this.#token.text === text && (this.#token.kind === 'operator' || text === 'in');
  }

  #accept(text: string): Token | undefined {
    return this.#is(text) ? this.#advance() : undefined;
  }

  #expect(text: string, expecting?: string): Token {
    if (this.#is(text)) return this.#advance();
    if (expecting !== undefined) throw this.#unexpected('mismatched input', expecting);
    throw new SyntaxIssue(this.#token.position, `Syntax error: missing '${text}' at '${this.#token.text}'`);
  }

  #node(node: Parameters<typeof expression>[0]): Expression {
    const made = expression(node);
    if (made.depth > maxDepth) throw tooDeep(made.position);
    return made;
  }

  #call(name: string, position: number, ...args: Expression[]): Expression {
    return this.#node({ kind: 'call', name, target: undefined, args, position });
  }

  /**
   * Parses an expression. All nested expressions are parsed here, so that the check of the depth limits the recursion
   * of the parser.
   */
  #expression(): Expression {
    if (++this.#depth > maxDepth) throw tooDeep(this.#token.position);
    const condition = this.#logical('||');
    const question = this.#accept('?');
    let result = condition;
    if (question) {
      const yes = this.#logical('||');
      this.#expect(':', "':'");
      result = this.#call('_?_:_', question.position, condition, yes, this.#expression());
    }
    this.#depth--;
    return result;
  }

  /** Parses a chain of `||` or `&&`. All terms become arguments of one call, so that long chains are not nested. */
  #logical(symbol: '||' | '&&'): Expression {
    const term = (): Expression => (symbol === '||' ? this.#logical('&&') : this.#binary(0));
    const first = term();
    const position = this.#token.position;
    const terms = [first];
    while (this.#accept(symbol)) terms.push(term());
    return terms.length === 1 ? first : this.#call(`_${symbol}_`, position, ...terms);
  }

  #binary(level: number): Expression {
    const operators = precedence[level];
    if (operators === undefined) return this.#unary();
    let left = this.#binary(level + 1);
    for (;;) {
      const symbol = operators.find((text) => this.#is(text));
      if (symbol === undefined) return left;
      const { position } = this.#advance();
      left = this.#call(symbol === 'in' ? '@in' : `_${symbol}_`, position, left, this.#binary(level + 1));
    }
  }

  #unary(): Expression {
    const { position } = this.#token;
    if (this.#is('!')) {
      let count = 0;
      while (this.#accept('!')) count++;
      const inner = this.#member();
      return count % 2 === 0 ? inner : this.#call('!_', position, inner);
    }
    if (!this.#is('-')) return this.#member();
    let count = 0;
    while (this.#accept('-')) count++;
    const { value } = this.#token;
    if (count === 1 && (typeof value === 'bigint' || typeof value === 'number')) {
      const signed = this.#node({ kind: 'literal', value: this.#signed(-value), position });
      this.#advance();
      return this.#suffixes(signed);
    }
    const inner = this.#member();
    return count % 2 === 0 ? inner : this.#call('-_', position, inner);
  }

  #signed<T extends bigint | number>(value: T): T {
    if (typeof value === 'bigint' && (value > maxInt || value < -maxInt - 1n)) {
      throw new SyntaxIssue(this.#token.position, 'invalid int literal');
    }
    return value;
  }

  #member(): Expression {
    return this.#suffixes(this.#primary());
  }

  #suffixes(start: Expression): Expression {
    let node = start;
    for (;;) {
      const dot = this.#accept('.');
      if (dot) {
        const optional = this.#accept('?');
        if (this.#token.kind !== 'ident') throw this.#unexpected('mismatched input', 'IDENTIFIER');
        const name = this.#advance();
        if (optional) {
          const field = this.#node({ kind: 'literal', value: name.text, position: name.position });
          node = this.#call('_?._', optional.position - 1, node, field);
        } else if (this.#is('(')) {
          node = this.#arguments(name.text, node);
        } else {
          node = this.#node({ kind: 'select', operand: node, field: name.text, test: false, position: dot.position });
        }
        continue;
      }
      const bracket = this.#accept('[');
      if (!bracket) return node;
      const optional = this.#accept('?');
      const index = this.#expression();
      this.#expect(']', "']'");
      node = this.#call(optional ? '_[?_]' : '_[_]', bracket.position, node, index);
    }
  }

  #arguments(name: string, target: Expression | undefined): Expression {
    const { position } = this.#expect('(');
    const args: Expression[] = [];
    if (!this.#is(')')) {
      do args.push(this.#expression());
      while (this.#accept(','));
    }
    this.#expect(')', "{')', ','}");
    const expanded = expandMacro(name, target, args, position);
    if (expanded && expanded.depth > maxDepth) throw tooDeep(position);
    return expanded ?? this.#node({ kind: 'call', name, target, args, position });
  }

  #primary(): Expression {
    const token = this.#token;
    if (token.kind === 'literal') {
      const { value = null } = token;
      if (typeof value === 'bigint') this.#signed(value);
      this.#advance();
      return this.#node({ kind: 'literal', value, position: token.position });
    }
    if (token.kind === 'ident') return this.#name();
    if (this.#accept('(')) {
      const inner = this.#expression();
      this.#expect(')');
      return inner;
    }
    if (this.#accept('[')) return this.#list(token.position);
    if (this.#accept('{')) return this.#map(token.position);
    if (this.#accept('.')) {
      if (this.#token.kind !== 'ident') throw this.#unexpected('mismatched input', 'IDENTIFIER');
      return this.#name();
    }
    throw this.#unexpected('mismatched input', operand);
  }

  #name(): Expression {
    const { text, position } = this.#token;
    if (text === 'in') throw this.#unexpected('mismatched input', operand);
    this.#advance();
    if (text === 'true' || text === 'false') return this.#node({ kind: 'literal', value: text === 'true', position });
    if (text === 'null') return this.#node({ kind: 'literal', value: null, position });
    if (reserved.has(text)) throw new SyntaxIssue(position, `reserved identifier: ${text}`);
    if (this.#is('(')) return this.#arguments(text, undefined);
    return this.#node({ kind: 'ident', name: text, position });
  }

  #list(position: number): Expression {
    const elements: Element[] = [];
    while (!this.#is(']')) {
      const optional = this.#accept('?') !== undefined;
      elements.push({ optional, value: this.#expression() });
      if (!this.#accept(',')) break;
    }
    this.#expect(']', "{']', ','}");
    return this.#node({ kind: 'list', elements, position });
  }

  #map(position: number): Expression {
    const entries: Entry[] = [];
    while (!this.#is('}')) {
      const optional = this.#accept('?') !== undefined;
      const key = this.#expression();
      this.#expect(':', "':'");
      entries.push({ optional, key, value: this.#expression() });
      if (!this.#accept(',')) break;
    }
    this.#expect('}', "{'}', ','}");
    return this.#node({ kind: 'map', entries, position });
  }
}

function tooDeep(position: number): SyntaxIssue {
  return new SyntaxIssue(position, `expression recursion limit exceeded: ${maxDepth}`);
}

/** Throws a {@link CelCompileError} for text that is no expression. */
export function parseExpression(source: string): Expression {
  if (source.length > maxSource) {
    const message = `expression code point size exceeds limit: size: ${source.length}, limit ${maxSource}`;
    throw new CelCompileError(source, [{ position: 0, message }]);
  }
  try {
    return new Parser(source).parse();
  } catch (error) {
    if (error instanceof SyntaxIssue) throw new CelCompileError(source, [error]);
    throw error;
  }
}
