import test from 'ava';
import {
  formatType,
  intType,
  listType,
  mapType,
  paramType,
  Substitutions,
  stringType,
} from '../../src/cel/base/types.ts';
import { compileExpression, dynType } from '../../src/cel/index.ts';

const [a, b] = [paramType('A'), paramType('B')];

/** What is known of the type variables after an attempt that fails at its last type. */
function afterFailure(known: Substitutions, ...attempt: Parameters<Substitutions['assignAll']>): string[] | undefined {
  const [types, values] = attempt;
  if (known.assignAll([...types, stringType], [...values, intType])) return undefined;
  return [a, b].map((type) => formatType(known.apply(type)));
}

test('an assignment binds type variables, and makes a bound type more general', (t) => {
  const known = new Substitutions();
  t.true(known.assignAll([a, b], [listType(intType), stringType]));
  t.true(known.assign(a, listType(dynType)));
  t.deepEqual(
    [a, b].map((type) => formatType(known.apply(type))),
    ['list(dyn)', 'string'],
  );
});

test('after a failed assignment, variables that it bound are free', (t) => {
  t.deepEqual(afterFailure(new Substitutions(), [a, listType(b)], [intType, listType(stringType)]), ['A', 'B']);
});

test('after a failed assignment, variables have the types of the assignments before', (t) => {
  const known = new Substitutions();
  t.true(known.assign(a, mapType(intType, intType)));
  const more = [mapType(dynType, intType), mapType(dynType, dynType)];
  t.deepEqual(afterFailure(known, [a, b, a], [more[0]!, intType, more[1]!]), ['map(int, int)', 'B'], 'changed twice');
  t.true(known.assignAll([a, b], [more[0]!, stringType]));
  t.deepEqual(afterFailure(known, [a], [more[1]!]), ['map(dyn, int)', 'string'], 'changed by assignments that remain');
});

test('after a failed assignment, the variables can be assigned other types', (t) => {
  const known = new Substitutions();
  t.deepEqual(afterFailure(known, [a], [intType]), ['A', 'B']);
  t.true(known.assign(a, stringType));
  t.false(known.assign(a, intType));
  t.is(formatType(known.apply(a)), 'string');
});

/**
 * How many entries the work sets in maps. Copies count, because the constructor of a map calls `set` for each entry.
 * Unlike a duration, the number does not depend on the machine.
 */
function entriesSet(work: () => void): number {
  const { set } = Map.prototype;
  let count = 0;
  Map.prototype.set = function counted(key, value) {
    count++;
    return set.call(this, key, value);
  };
  try {
    work();
  } finally {
    Map.prototype.set = set;
  }
  return count;
}

for (const [title, term] of [
  ['of one type', (i: number) => `x == ${i}`],
  ['whose functions have several overloads', (i: number) => `size([x] + [${i}]) > 0`],
] as const) {
  test(`the work of a type check is proportional to the number of conditions ${title}`, (t) => {
    const compile = (count: number) => {
      const source = Array.from({ length: count }, (_, i) => term(i)).join(' && ');
      return () => void compileExpression(source, { variables: { x: intType } });
    };
    // The functions are made when the first expression is compiled.
    compile(1)();
    const [few, many] = [entriesSet(compile(500)), entriesSet(compile(2000))];
    t.true(few > 500);
    t.true(many <= 4 * few, `${few} entries for 500 conditions, ${many} for 2000`);
  });
}
