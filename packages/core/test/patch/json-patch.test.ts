import test from 'ava';
import fc from 'fast-check';
import { applyJsonPatch } from '../../src/patch/json-patch.ts';
import { isPatchError, PatchError } from '../../src/patch/patch-budget.ts';

type Op = Record<string, unknown>;

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null)
    for (const item of Object.values(Object.freeze(value))) deepFreeze(item);
  return value;
}

const applies = test.macro({
  title: (_, name: string) => `applies: ${name}`,
  exec(t, _name: string, document: unknown, operations: Op[] | null, expected: unknown) {
    t.deepEqual(applyJsonPatch(deepFreeze(document), deepFreeze(operations)), expected);
  },
});

test(applies, 'member added', { foo: 'bar' }, [{ op: 'add', path: '/baz', value: 'qux' }], { foo: 'bar', baz: 'qux' });
test(applies, 'adding an existing member replaces it', { a: 1 }, [{ op: 'add', path: '/a', value: 2 }], { a: 2 });
test(applies, 'array element inserted', { f: ['bar', 'baz'] }, [{ op: 'add', path: '/f/1', value: 'q' }], {
  f: ['bar', 'q', 'baz'],
});
test(applies, 'append with an index one past the end', { f: [1] }, [{ op: 'add', path: '/f/1', value: 2 }], {
  f: [1, 2],
});
test(applies, 'append with a dash', { f: [1] }, [{ op: 'add', path: '/f/-', value: [2] }], { f: [1, [2]] });
test(applies, 'member removed', { baz: 1, foo: 2 }, [{ op: 'remove', path: '/baz' }], { foo: 2 });
test(applies, 'element removed', [1, 2, 3], [{ op: 'remove', path: '/1' }], [1, 3]);
test(applies, 'value replaced, also by null', { a: 1, b: 2 }, [{ op: 'replace', path: '/a', value: null }], {
  a: null,
  b: 2,
});
test(applies, 'value moved', { a: { x: 1 }, b: {} }, [{ op: 'move', from: '/a/x', path: '/b/y' }], {
  a: {},
  b: { y: 1 },
});
test(applies, 'element moved', { f: [1, 2, 3, 4] }, [{ op: 'move', from: '/f/1', path: '/f/3' }], { f: [1, 3, 4, 2] });
test(applies, 'move onto itself', { a: 1 }, [{ op: 'move', from: '/a', path: '/a' }], { a: 1 });
test(applies, 'move up replaces the parent', { a: { b: { c: 1 } } }, [{ op: 'move', from: '/a/b', path: '/a' }], {
  a: { c: 1 },
});
test(
  applies,
  'test compares deeply and ignores key order',
  { a: { x: 1, y: [2] } },
  [{ op: 'test', path: '/a', value: { y: [2], x: 1 } }],
  {
    a: { x: 1, y: [2] },
  },
);
test(applies, 'whole document replaced', { a: 1 }, [{ op: 'replace', path: '', value: [1] }], [1]);
test(
  applies,
  'escaped names',
  { '/': 1, '~1': 2 },
  [
    { op: 'remove', path: '/~1' },
    { op: 'test', path: '/~01', value: 2 },
  ],
  { '~1': 2 },
);
test(applies, 'empty key', { '': 1 }, [{ op: 'replace', path: '/', value: 2 }], { '': 2 });
test(applies, 'unknown members of an operation are ignored', {}, [{ op: 'add', path: '/a', value: 1, xyz: 1 }], {
  a: 1,
});
test(
  applies,
  'a copy lives its own life',
  { a: { n: [1] } },
  [
    { op: 'add', path: '/a/n/-', value: 2 },
    { op: 'copy', from: '/a', path: '/b' },
    { op: 'add', path: '/a/n/-', value: 3 },
    { op: 'remove', path: '/b/n/0' },
  ],
  { a: { n: [1, 2, 3] }, b: { n: [2] } },
);
test(
  applies,
  'a value used twice is not entangled',
  {},
  (() => {
    const value = { list: [] as number[] };
    return [
      { op: 'add', path: '/a', value },
      { op: 'add', path: '/b', value },
      { op: 'add', path: '/a/list/-', value: 1 },
    ];
  })(),
  { a: { list: [1] }, b: { list: [] } },
);

test(applies, 'replace of a missing member adds it', {}, [{ op: 'replace', path: '/a', value: 1 }], { a: 1 });
test(applies, 'a missing member equals null', { a: 1 }, [{ op: 'test', path: '/b', value: null }], { a: 1 });
test(applies, 'an operation without value has null', { a: 1 }, [{ op: 'add', path: '/b' }], { a: 1, b: null });
test(applies, 'a copy of a missing member is null', {}, [{ op: 'copy', from: '/a', path: '/b' }], { b: null });
test(applies, 'text before the first slash is ignored', {}, [{ op: 'add', path: 'x/a', value: 1 }], { a: 1 });
test(applies, 'a tilde before another character stays', {}, [{ op: 'add', path: '/~2', value: 1 }], { '~2': 1 });
test(applies, 'no operations instead of a list', { a: 1 }, null, { a: 1 });
for (const [op, index, expected] of [
  ['add', '-1', [1, 2, 9]],
  ['add', '-3', [9, 1, 2]],
  ['add', '+1', [1, 9, 2]],
  ['replace', '-1', [1, 9]],
  ['replace', '-2', [9, 2]],
  ['replace', '01', [1, 9]],
  ['remove', '-1', [1]],
  ['remove', '-2', [2]],
] as const) {
  test(applies, `${op} at index ${index}`, { f: [1, 2] }, [{ op, path: `/f/${index}`, value: 9 }], { f: expected });
}

const refuses = test.macro({
  title: (_, name: string) => `refuses: ${name}`,
  exec(t, _name: string, kind: PatchError['kind'], document: unknown, operations: unknown) {
    const error = t.throws(() => applyJsonPatch(deepFreeze(document), operations), { instanceOf: PatchError });
    t.true(isPatchError(error, kind), `${error?.kind}: ${error?.message}`);
  },
});

test(refuses, 'no list', 'malformed', {}, { op: 'add', path: '/a', value: 1 });
test(refuses, 'operation that is no object', 'malformed', {}, ['add']);
test(refuses, 'unknown operation', 'unprocessable', {}, [{ op: 'merge', path: '/a', value: 1 }]);
test(refuses, 'missing path', 'unprocessable', {}, [{ op: 'add', value: 1 }]);
test(refuses, 'missing from', 'unprocessable', { a: 1 }, [{ op: 'copy', path: '/b' }]);
test(refuses, 'pointer without slash', 'unprocessable', { a: 1 }, [{ op: 'remove', path: 'a' }]);
test(refuses, 'add below a missing parent', 'unprocessable', {}, [{ op: 'add', path: '/a/b', value: 1 }]);
test(refuses, 'add below a scalar', 'unprocessable', { a: 'text' }, [{ op: 'add', path: '/a/length', value: 1 }]);
test(refuses, 'remove of a missing member', 'unprocessable', {}, [{ op: 'remove', path: '/a' }]);
test(refuses, 'inherited names do not exist', 'unprocessable', {}, [
  { op: 'test', path: '/constructor/name', value: 'Object' },
]);
test(refuses, 'removal of the whole document', 'unprocessable', {}, [{ op: 'remove', path: '' }]);
test(refuses, 'failing test', 'unprocessable', { a: '1' }, [{ op: 'test', path: '/a', value: 1 }]);
test(refuses, 'test of fewer members', 'unprocessable', { a: { x: 1, y: 2 } }, [
  { op: 'test', path: '/a', value: { x: 1 } },
]);
test(refuses, 'move into its own child', 'unprocessable', { a: { b: {} } }, [
  { op: 'move', from: '/a', path: '/a/b/c' },
]);
test(refuses, 'replace below a missing parent', 'unprocessable', {}, [{ op: 'replace', path: '/a/b', value: 1 }]);
test(refuses, 'remove below a missing parent', 'unprocessable', {}, [{ op: 'remove', path: '/a/b' }]);
test(refuses, 'test for null below a missing parent', 'unprocessable', {}, [{ op: 'test', path: '/a/b', value: null }]);
test(refuses, 'copy from below a missing parent', 'unprocessable', {}, [{ op: 'copy', from: '/a/b', path: '/c' }]);
test(refuses, 'move of a missing member', 'unprocessable', {}, [{ op: 'move', from: '/a', path: '/b' }]);
test(refuses, 'replace of an index before the first', 'unprocessable', { f: [1] }, [
  { op: 'replace', path: '/f/-2', value: 1 },
]);
for (const index of ['2', '-3', '1e0', ' 1', '1.0', '99999999999999999999', 'length', '']) {
  test(refuses, `array index ${JSON.stringify(index)}`, 'unprocessable', { f: [1] }, [
    { op: 'add', path: `/f/${index}`, value: 1 },
  ]);
}
test(refuses, 'a dash where something must exist', 'unprocessable', { f: [1] }, [{ op: 'remove', path: '/f/-' }]);
test(refuses, 'an index one past the end where something must exist', 'unprocessable', { f: [1] }, [
  { op: 'replace', path: '/f/1', value: 1 },
]);

test('more than ten thousand operations are too large, ten thousand are not', (t) => {
  const operations = Array.from({ length: 10_001 }, (_, i) => ({ op: 'add', path: '/list/-', value: i }));
  const error = t.throws(() => applyJsonPatch({ list: [] }, operations), { instanceOf: PatchError });
  t.is(error?.kind, 'tooLarge');
  const result = applyJsonPatch({ list: [] }, operations.slice(1)) as { list: number[] };
  t.is(result.list.length, 10_000);
});

test('doubling by copy ends at the byte budget, quickly', (t) => {
  const document = { a: ['x'.repeat(1000)] };
  const operations = Array.from({ length: 40 }, () => ({ op: 'copy', from: '/a', path: '/a/-' }));
  const started = performance.now();
  const error = t.throws(() => applyJsonPatch(document, operations), { instanceOf: PatchError });
  t.is(error?.kind, 'unprocessable');
  t.true(performance.now() - started < 10_000);
  t.deepEqual(document, { a: ['x'.repeat(1000)] });
});

test('hostile names are data and touch no prototype', (t) => {
  const before = Object.getOwnPropertyNames(Object.prototype).length;
  const result = applyJsonPatch({ labels: {} }, [
    { op: 'add', path: '/labels/__proto__', value: { polluted: true } },
    { op: 'add', path: '/labels/__proto__/more', value: 1 },
    { op: 'add', path: '/labels/constructor', value: { prototype: {} } },
    { op: 'add', path: '/labels/constructor/prototype/polluted', value: true },
  ]);
  t.is(
    JSON.stringify(result),
    '{"labels":{"__proto__":{"polluted":true,"more":1},"constructor":{"prototype":{"polluted":true}}}}',
  );
  t.is(({} as Op)['polluted'], undefined);
  t.is(Object.getOwnPropertyNames(Object.prototype).length, before);
  t.throws(() => applyJsonPatch({}, [{ op: 'add', path: '/__proto__/polluted', value: 1 }]), {
    instanceOf: PatchError,
  });
  const removed = applyJsonPatch(JSON.parse('{"__proto__":1,"a":2}'), [{ op: 'remove', path: '/__proto__' }]);
  t.is(JSON.stringify(removed), '{"a":2}');
});

test('a failing operation names its place in the patch and no value', (t) => {
  const error = t.throws(() =>
    applyJsonPatch({ a: 'secret' }, [
      { op: 'test', path: '/a', value: 'secret' },
      { op: 'test', path: '/a', value: 'guess' },
    ]),
  );
  t.is(error?.message, 'operation 1: test failed');
});

test('unchanged parts are shared', (t) => {
  const document = { metadata: { labels: {} }, spec: { containers: [{ name: 'a' }] } };
  const result = applyJsonPatch(document, [{ op: 'add', path: '/metadata/labels/x', value: '1' }]) as typeof document;
  t.is(result.spec, document.spec);
  t.not(result.metadata, document.metadata);
});

const json = fc.jsonValue({ maxDepth: 3 });
const key = fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom('__proto__', 'constructor', '~', '/', '0', '-'));
const escaped = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1');

test('property: add then remove gives the document back', (t) => {
  fc.assert(
    fc.property(fc.dictionary(key, json), key, json, (document, name, value) => {
      fc.pre(!Object.hasOwn(document, name));
      const plain = JSON.parse(JSON.stringify(document));
      const added = applyJsonPatch(deepFreeze(plain), [{ op: 'add', path: `/${escaped(name)}`, value }]);
      t.true(Object.hasOwn(added as object, name));
      t.is(JSON.stringify(applyJsonPatch(added, [{ op: 'remove', path: `/${escaped(name)}` }])), JSON.stringify(plain));
    }),
  );
});

test('property: inserting into a list and removing there gives the list back; move is remove and add', (t) => {
  fc.assert(
    fc.property(fc.array(json, { minLength: 1 }), fc.nat(), fc.nat(), json, (raw, a, b, value) => {
      const list = deepFreeze(JSON.parse(JSON.stringify(raw)) as unknown[]);
      const at = a % (list.length + 1);
      const inserted = applyJsonPatch(list, [{ op: 'add', path: `/${at}`, value }]);
      t.deepEqual(applyJsonPatch(inserted, [{ op: 'remove', path: `/${at}` }]), list);
      const from = a % list.length;
      const to = b % list.length;
      const moved = applyJsonPatch(list, [{ op: 'move', from: `/${from}`, path: `/${to}` }]);
      const twoSteps = [
        { op: 'remove', path: `/${from}` },
        { op: 'add', path: `/${to}`, value: list[from] },
      ];
      t.deepEqual(moved, applyJsonPatch(list, twoSteps));
    }),
  );
});
