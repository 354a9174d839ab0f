import { readFileSync } from 'node:fs';
import test from 'ava';
import { doubleType, formatType } from '../../src/cel/base/types.ts';
import {
  boolType,
  CelCompileError,
  CelEvaluationError,
  type CelType,
  CostBudget,
  compileExpression,
  dynType,
  intType,
  listType,
  maxRequestBytes,
  schemaType,
  stringType,
  type TypeSchema,
} from '../../src/cel/index.ts';
import { showValue } from './show-value.ts';

// Expressions with the results, messages and costs of cel-go 0.26 in the environment of Kubernetes 1.34
// (k8s.io/apiserver/pkg/cel/environment). A variable is dynamic unless its name has a type behind a colon.
const file = new URL('../../../test/cel/fixtures/rules.jsonl', import.meta.url);

interface Rule {
  readonly source: string;
  readonly bindings?: Readonly<Record<string, unknown>>;
  readonly value?: string;
  readonly error?: string;
  readonly compile?: string;
  readonly cost: number;
}

/** Costs are texts because they have 64 bits. */
interface RecordedCosts {
  readonly schema: TypeSchema;
  readonly root?: boolean;
  readonly cardinality: string;
  readonly costs: Readonly<Record<string, string>>;
}

const types: Readonly<Record<string, CelType>> = {
  ...{ bool: boolType, double: doubleType, int: intType, string: stringType },
  ...{ list_int: listType(intType), list_string: listType(stringType) },
};

function outcome({ source, bindings = {} }: Rule): Omit<Rule, 'source' | 'bindings'> & { type?: string } {
  const variables: Record<string, CelType> = {};
  const values: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(bindings)) {
    const [name = '', type = ''] = key.split(':');
    variables[name] = types[type] ?? dynType;
    values[name] = value;
  }
  const limit = 1_000_000;
  const budget = new CostBudget(limit);
  try {
    const expression = compileExpression(source, { variables });
    try {
      const value = showValue(expression.evaluate(values, budget));
      return { value, cost: limit - budget.remaining };
    } catch (error) {
      if (!(error instanceof CelEvaluationError)) throw error;
      return { error: error.message, cost: limit - budget.remaining };
    }
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    return { compile: error.message, cost: 0 };
  }
}

test('expressions have the values, messages and costs of Kubernetes', (t) => {
  const rules = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Rule);
  t.true(rules.length >= 600);
  for (const rule of rules) {
    const { value, error, compile, cost } = rule;
    const expected = { ...(value !== undefined && { value }), ...(error !== undefined && { error }), cost };
    t.deepEqual(outcome(rule), compile === undefined ? expected : { compile, cost }, rule.source);
  }
});

test('the estimated costs of expressions over parts of a schema are those of Kubernetes', (t) => {
  // Recorded from k8s.io/apiextensions-apiserver 0.34.2: most rules are those of its own tests.
  const costs = new URL('../../../test/cel/fixtures/costs.jsonl', import.meta.url);
  let rules = 0;
  for (const line of readFileSync(costs, 'utf8').trim().split('\n')) {
    const recorded = JSON.parse(line) as RecordedCosts;
    const type = schemaType(recorded.schema, recorded.root);
    if (type?.minBytes === undefined) throw new Error(`no type for ${line}`);
    t.is(String(Math.floor(maxRequestBytes / (type.minBytes + 1))), recorded.cardinality, line);
    const options = { variables: { self: type, oldSelf: type }, resultTypes: [boolType], costRoot: type };
    for (const [rule, cost] of Object.entries(recorded.costs)) {
      rules++;
      t.is(String(compileExpression(rule, options).maxCost), cost, `${rule} with ${JSON.stringify(recorded.schema)}`);
    }
  }
  t.true(rules >= 1100);
});

for (const [source, first] of [
  ["'abc", "ERROR: <input>:1:1: Syntax error: token recognition error at: ''abc'"],
  ['a = 1', "ERROR: <input>:1:3: Syntax error: token recognition error at: '='"],
  ['1.', "ERROR: <input>:1:3: Syntax error: mismatched input '<EOF>' expecting IDENTIFIER"],
  ["int('4x')", "type conversion error from 'string' to 'int'"],
  ["'%d'.format(['x'])", 'error during formatting: decimal clause can only be used on integers, was given string'],
] as const) {
  test(`the message about ${source} is that of the first error`, (t) => {
    const { compile, error } = outcome({ source, cost: 0 });
    t.is((compile ?? error)?.split('\n')[0], first);
  });
}

test('the result has the type that its place requires', (t) => {
  const options = { variables: { object: dynType }, resultTypes: [boolType] };
  t.is(formatType(compileExpression('object.a == 1', options).type), 'bool');
  t.throws(() => compileExpression('object.a', options), { message: 'must evaluate to bool but got dyn' });
  t.throws(() => compileExpression('1', { variables: {}, resultTypes: [stringType, boolType] }), {
    message: 'must evaluate to one of [string bool] but got int',
  });
});
