import test from 'ava';
import {
  CelBudgetError,
  CelCompileError,
  CelEvaluationError,
  CostBudget,
  compileExpression,
  dynType,
  listType,
  stringType,
} from '../../src/cel/index.ts';

const variables = { list: listType(dynType), text: stringType };
const list = Array.from({ length: 20_000 }, (_, i) => i);
const bindings = { list, text: 'a'.repeat(1_000_000) };

/** No expression may occupy the server for long; the bound leaves room for a busy machine. */
const maxMs = 30_000;

const expensive: readonly (readonly [title: string, source: string])[] = [
  ['nested macros', 'list.all(a, list.all(b, list.all(c, list.all(d, true))))'],
  ['nested macros that fail', 'list.exists(a, list.exists(b, a / 0 == b))'],
  ['a text that doubles in each step', 'list.map(x, text + text + text).join("").size() > 0'],
  ['replacing nothing by much', "text.replace('', text).size() > 0"],
  ['joining a long text often', 'list.map(x, text).join(text).size() > 0'],
  ['a long range', 'lists.range(1000000000).size() > 0'],
  ['a regular expression that backtracks elsewhere', "list.all(x, text.matches('(a+)+$') || true)"],
  ['repeated measuring', 'list.all(x, list.all(y, text.size() > 0))'],
  ['a sort of a long list', 'list.map(x, dyn(x)).distinct().size() > 0'],
  ['optional values of optional values', `${'optional.of(1)'}${'.optMap(x, x + 1)'.repeat(40)}.hasValue()`],
  [
    'a list that doubles',
    Array(40)
      .fill('list')
      .reduce((inner) => `[list + list].map(list, ${inner})`, 'list')
      .concat(' == []'),
  ],
];

for (const [title, source] of expensive) {
  test(`the time of an expression is bounded: ${title}`, (t) => {
    const expression = compileExpression(source, { variables });
    const start = performance.now();
    const error = t.throws(() => expression.evaluate(bindings, new CostBudget()));
    t.true(error instanceof CelEvaluationError, String(error));
    t.regex(error.message, /^operation (?:cancelled: actual cost limit exceeded|interrupted)$/);
    t.true(performance.now() - start < maxMs);
  });
}

const unreadable: readonly (readonly [title: string, source: string, message: RegExp])[] = [
  ['deep brackets', `${'['.repeat(100_000)}`, /expression recursion limit exceeded: 250/],
  ['deep parentheses', `${'('.repeat(5000)}1${')'.repeat(5000)}`, /expression recursion limit exceeded: 250/],
  ['long sums', Array(10_000).fill('1').join('+'), /expression recursion limit exceeded: 250/],
  ['long chains of fields', `text${'.a'.repeat(10_000)}`, /expression recursion limit exceeded: 250/],
  ['much text', `'${'a'.repeat(200_000)}'`, /expression code point size exceeds limit: size: 200002, limit 100000/],
];

for (const [title, source, message] of unreadable) {
  test(`an expression that is too large is rejected: ${title}`, (t) => {
    const error = t.throws(() => compileExpression(source, { variables }));
    t.true(error instanceof CelCompileError, String(error));
    t.regex(error.message, message);
    t.true(error.message.length < 10_000);
  });
}

test('a chain of 5000 conditions is compiled and evaluated without recursion', (t) => {
  const source = Array.from({ length: 5000 }, (_, i) => `text != '${i}'`).join(' && ');
  t.is(compileExpression(source, { variables }).evaluate(bindings), true);
});

test('expressions share a cost budget', (t) => {
  const expression = compileExpression('list.all(x, x >= 0)', { variables });
  const budget = new CostBudget(250_000);
  t.is(expression.evaluate(bindings, budget), true);
  t.is(expression.evaluate(bindings, budget), true);
  t.throws(() => expression.evaluate(bindings, budget), { instanceOf: CelBudgetError });
  t.true(budget.remaining < 0);
});

test('names of properties of Object.prototype are ordinary names', (t) => {
  const options = { variables: { object: dynType } };
  for (const source of ['has(object.constructor)', 'has(object.__proto__)', 'has(object.toString)']) {
    t.is(compileExpression(source, options).evaluate({ object: {} }), false, source);
  }
  t.is(compileExpression('object.constructor', options).evaluate({ object: { constructor: 'x' } }), 'x');
});
