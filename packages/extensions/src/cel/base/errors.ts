/** An error in an expression with its position in the source text. */
export interface CelIssue {
  readonly position: number;
  readonly message: string;
}

function lineAndColumn(source: string, position: number): { line: number; column: number; text: string } {
  const start = source.lastIndexOf('\n', position - 1) + 1;
  const end = source.indexOf('\n', position);
  const line = source.slice(0, start).split('\n').length;
  return {
    line,
    column: [...source.slice(start, position)].length,
    text: source.slice(start, end < 0 ? undefined : end),
  };
}

/** Maximum length of the excerpt of a source line in a message. */
const maxShown = 1024;

/** Characters beyond ASCII count as two columns wide, as in cel-go. */
function isWide(point = ''): boolean {
  return point.charCodeAt(0) > 127;
}

function display(source: string, { position, message }: CelIssue): string {
  const { line, column, text } = lineAndColumn(source, position);
  const first = `ERROR: <input>:${line}:${source === '' ? 0 : column + 1}: ${message}`;
  if (source === '' || text.length > maxShown) return first;
  const points = [...text];
  const dots = points.slice(0, column).map((point) => (isWide(point) ? '．' : '.'));
  return `${first}\n | ${text}\n | ${dots.join('')}${isWide(points[column]) ? '＾' : '^'}`;
}

/** The expression has errors of syntax or type. The message is the one of cel-go, which users of Kubernetes see. */
export class CelCompileError extends Error {
  override readonly name = 'CelCompileError';
  readonly issues: readonly CelIssue[];

  constructor(source: string, issues: readonly CelIssue[]) {
    const sorted = [...issues].sort((a, b) => a.position - b.position);
    super(sorted.map((issue) => display(source, issue)).join('\n'));
    this.issues = sorted;
  }
}

/** The type of the expression is none of the types that its field permits. */
export class CelResultTypeError extends Error {
  override readonly name = 'CelResultTypeError';

  constructor(expected: readonly string[], found: string) {
    const one = expected.length === 1 ? expected[0] : `one of [${expected.join(' ')}]`;
    super(`must evaluate to ${one} but got ${found}`);
  }
}

/** The evaluation failed, such as `no such key: x`. */
export class CelEvaluationError extends Error {
  override readonly name: string = 'CelEvaluationError';
}

/** The evaluation was stopped because it exceeded its budget. */
export class CelBudgetError extends CelEvaluationError {
  override readonly name = 'CelBudgetError';

  constructor() {
    super('operation cancelled: actual cost limit exceeded');
  }
}

/**
 * A failed part of an evaluation. It is a value, not an exception, because `&&`, `||` and macros ignore the failure of
 * one side when the other decides.
 */
export class Fault {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

export const noSuchOverload = new Fault('no such overload');
