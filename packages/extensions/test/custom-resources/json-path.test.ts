import test from 'ava';
import { parseJsonPath, printedValue, readJsonPath } from '../../src/custom-resources/serving/json-path.ts';

const object = {
  spec: { size: 'small', 'a.b': 1, list: [1, 2, 3], nested: { x: { name: 'n' } } },
  status: {
    conditions: [
      { type: 'Ready', status: 'True', n: 1 },
      { type: 'Synced', status: 'False', n: 5 },
    ],
  },
};

const cases: readonly (readonly [path: string, values: readonly unknown[]])[] = [
  ['.spec.size', ['small']],
  ['.spec.none.deeper', []],
  ['.spec.a\\.b', [1]],
  [".spec['a.b']", [1]],
  [".spec['size','a.b']", ['small', 1]],
  ['.spec.list[0]', [1]],
  ['.spec.list[-1]', [3]],
  ['.spec.list[0:2]', [1, 2]],
  ['.spec.list[::2]', [1, 3]],
  ['.spec.list[*]', [1, 2, 3]],
  ['.status.conditions[*].type', ['Ready', 'Synced']],
  ['.status.conditions[?(@.type=="Ready")].status', ['True']],
  [".status.conditions[?(@.type == 'Synced')].status", ['False']],
  ['.status.conditions[?(@.n>1)].type', ['Synced']],
  ['.status.conditions[?(@.type!="Ready")].type', ['Synced']],
  ['.spec..name', ['n']],
  ['.', [object]],
];
for (const [path, values] of cases) {
  test(`the path ${path}`, (t) => {
    const parsed = parseJsonPath(path);
    t.truthy(parsed);
    t.deepEqual(readJsonPath(parsed ?? [], object), values);
  });
}

test('an invalid path is not parsed, and a recursive path returns a bounded number of values', (t) => {
  for (const path of ['.spec[', '.a[?(', '.a]']) t.is(parseJsonPath(path), undefined, path);
  let deep: unknown = {};
  for (let i = 0; i < 150; i++) deep = { a: deep, b: deep === undefined ? {} : { a: 1 } };
  t.true(readJsonPath(parseJsonPath('........a') ?? [], deep).length <= 10_001);
});

test('values are printed as kubectl prints them', (t) => {
  t.is(printedValue({ a: [1] }), '{"a":[1]}');
  t.is(printedValue(1.5), '1.5');
  t.is(printedValue(true), 'true');
});
