import test from 'ava';
import fc from 'fast-check';
import { applyMergePatch } from '../../src/patch/merge-patch.ts';

/** The table of RFC 7386, appendix A. */
const table: [string, string, string][] = [
  ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
  ['{"a":"b"}', '{"a":null}', '{}'],
  ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
  ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
  ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
  ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
  ['["a","b"]', '["c","d"]', '["c","d"]'],
  ['{"a":"b"}', '["c"]', '["c"]'],
  ['{"a":"foo"}', 'null', 'null'],
  ['{"a":"foo"}', '"bar"', '"bar"'],
  ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
  ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
  ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
];

test('RFC 7386 examples', (t) => {
  for (const [document, patch, expected] of table) {
    t.is(JSON.stringify(applyMergePatch(JSON.parse(document), JSON.parse(patch))), expected, `${document} + ${patch}`);
  }
});

test('nulls inside lists are data', (t) => {
  t.deepEqual(applyMergePatch({ a: 1 }, { a: [null, { b: null }] }), { a: [null, { b: null }] });
});

test('an object is returned as it is when nothing changes, and unchanged parts are shared', (t) => {
  const document = { a: { b: 1 }, c: { d: [1] } };
  t.is(applyMergePatch(document, { a: { b: 1, x: null }, z: null }), document);
  const changed = applyMergePatch(document, { a: { b: 2 } }) as typeof document;
  t.is(changed.c, document.c);
  t.deepEqual(document, { a: { b: 1 }, c: { d: [1] } });
});

test('hostile names are data and touch no prototype', (t) => {
  const patch = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"toString":null}');
  const result = applyMergePatch({ a: 1 }, patch);
  t.is(JSON.stringify(result), '{"a":1,"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}');
  t.is(({} as Record<string, unknown>)['polluted'], undefined);
  t.is(
    JSON.stringify(applyMergePatch(result, JSON.parse('{"__proto__":null}'))),
    '{"a":1,"constructor":{"prototype":{"polluted":1}}}',
  );
});

const key = fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor');
const { tree } = fc.letrec((tie) => ({
  leaf: fc.oneof(fc.integer(), fc.string({ maxLength: 3 }), fc.constant(null), fc.array(fc.nat(3), { maxLength: 2 })),
  tree: fc.oneof({ depthSize: 'small' }, tie('leaf'), fc.dictionary(key, tie('tree'), { maxKeys: 4 })),
}));
const value = tree.map((raw) => JSON.parse(JSON.stringify(raw)) as unknown);

/** The patch that RFC 7386 would have a client send; undefined when none can (a null is wanted). */
function diff(from: unknown, to: unknown): unknown {
  if (!isObject(from) || !isObject(to)) return to;
  const entries: [string, unknown][] = [];
  for (const name of Object.keys(from)) if (!Object.hasOwn(to, name)) entries.push([name, null]);
  for (const name of Object.keys(to))
    entries.push([name, diff(Object.hasOwn(from, name) ? from[name] : undefined, to[name])]);
  return Object.fromEntries(entries);
}
const isObject = (v: unknown): v is Record<string, unknown> => typeof v === 'object' && v !== null && !Array.isArray(v);
const withoutNulls = (v: unknown): unknown =>
  isObject(v)
    ? Object.fromEntries(
        Object.entries(v)
          .filter(([, item]) => item !== null)
          .map(([name, item]) => [name, withoutNulls(item)]),
      )
    : v;

test('property: applying twice is applying once', (t) => {
  fc.assert(
    fc.property(value, value, (document, patch) => {
      const once = applyMergePatch(document, patch);
      t.deepEqual(applyMergePatch(once, patch), once);
    }),
  );
});

test('property: the difference of two documents leads from one to the other', (t) => {
  fc.assert(
    fc.property(value, value, (from, to) => {
      const wanted = withoutNulls(to);
      t.deepEqual(applyMergePatch(from, diff(from, wanted)), wanted);
    }),
  );
});

test('property: the document is never changed', (t) => {
  fc.assert(
    fc.property(value, value, (document, patch) => {
      const before = JSON.stringify([document, patch]);
      applyMergePatch(document, patch);
      t.is(JSON.stringify([document, patch]), before);
    }),
  );
});
