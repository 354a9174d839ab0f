import test from 'ava';
import fc from 'fast-check';
import { DocumentError } from '../../src/json/document-error.ts';
import { parseJson, surveyJson } from '../../src/json/json.ts';
import { JsonScanner } from '../../src/json/json-scanner.ts';

const parse = (text: string, duplicates = false) => parseJson(Buffer.from(text), { duplicates });

test('values of every type', (t) => {
  t.deepEqual(parse(' {"a":[1,-0.5e3,"x\\u0041\\n",true,false,null,{}]}\n').value, {
    a: [1, -500, 'xA\n', true, false, null, {}],
  });
});

test('on request, repeated fields are reported with their path; the last occurrence is the value', (t) => {
  const text = '{"a":1,"spec":{"ports":[{"p":1},{"p":1,"q":[{"x":1,"x":2}],"p":2}],"a":1},"a":{"b":1}}';
  t.deepEqual(parse(text, true).duplicateFields, ['spec.ports[1].q[0].x', 'spec.ports[1].p', 'a']);
  t.deepEqual(parse(text).duplicateFields, []);
  t.deepEqual((parse(text, true).value as Record<string, unknown>)['a'], { b: 1 });
});

test('names are compared after their escapes; colons and quotes in strings are text', (t) => {
  t.deepEqual(parse('{"a":1,"\\u0061":2}', true).duplicateFields, ['a']);
  t.deepEqual(parse('{"a:\\"b\\":":":\\\\","b":":{"}', true).duplicateFields, []);
});

test('__proto__ is an own property', (t) => {
  const { value, duplicateFields } = parse('{"__proto__":{"x":1},"constructor":2,"__proto__":{"y":1}}', true);
  t.true(Object.hasOwn(value as object, '__proto__'));
  t.is(Object.getPrototypeOf(value), Object.prototype);
  t.deepEqual(duplicateFields, ['__proto__']);
});

const refuses = test.macro({
  title: (_, text: string) => `refuses ${JSON.stringify(text).slice(0, 60)}`,
  exec(t, text: string, message: string) {
    const error = t.throws(() => parse(text), { instanceOf: DocumentError });
    t.is(error?.reason, 'syntax');
    t.is(error?.message, message);
  },
});

test(refuses, '', 'unexpected end of input where a value belongs (line 1, column 1)');
test(refuses, '{"a":1', 'unexpected end of input where a comma or } belongs (line 1, column 7)');
test(refuses, '{"a":\n  [1,\n]}', "invalid character ']' where a value belongs (line 3, column 1)");
test(refuses, '{"a" 1}', "invalid character '1' where a colon belongs (line 1, column 6)");
test(refuses, "{'a':1}", "invalid character ''' where a field name in quotes belongs (line 1, column 2)");
test(refuses, '{"a":1,}', "invalid character '}' where a field name in quotes belongs (line 1, column 8)");
test(refuses, '[1 2]', "invalid character '2' where a comma or ] belongs (line 1, column 4)");
test(refuses, '"a\tb"', 'invalid character 0x09 in a string (line 1, column 3)');
test(refuses, '"a\\x"', "invalid character '\\' that begins no known escape (line 1, column 3)");
test(refuses, '"abc', 'unexpected end of input in a string (line 1, column 5)');
test(refuses, 'tru', 'unexpected end of input in the literal true (line 1, column 4)');
test(refuses, '{} {}', "invalid character '{' after the document (line 1, column 4)");
test(refuses, '01', "invalid character '1' after the document (line 1, column 2)");
test(refuses, 'NaN', "invalid character 'N' where a value belongs (line 1, column 1)");
test(refuses, '\ufeff{}', 'invalid character 0xef where a value belongs (line 1, column 1)');

test('errors do not quote the document', (t) => {
  const error = t.throws(() => parse('{"password":"hunter2" "x"}'));
  t.false(error?.message.includes('hunter'));
});

test('bytes that are not UTF-8', (t) => {
  const error = t.throws(() => parseJson(Buffer.from([0x22, 0xc3, 0x28, 0x22])), { instanceOf: DocumentError });
  t.is(error?.reason, 'encoding');
});

test('nesting up to 200 levels, brackets in strings do not count', (t) => {
  const nested = (levels: number) => `${'[{"a":'.repeat(levels / 2)}1${'}]'.repeat(levels / 2)}`;
  t.notThrows(() => parse(nested(200)));
  t.is(t.throws(() => parse(nested(202)), { instanceOf: DocumentError })?.reason, 'tooDeep');
  t.notThrows(() => parse(JSON.stringify({ a: '[{'.repeat(5000), b: Array.from({ length: 500 }, () => ['\\"[']) })));
  const started = performance.now();
  t.is(t.throws(() => parse('['.repeat(3 << 20)), { instanceOf: DocumentError })?.reason, 'tooDeep');
  t.is(t.throws(() => parse('{"a":'.repeat(600_000)), { instanceOf: DocumentError })?.reason, 'tooDeep');
  t.true(performance.now() - started < 10_000);
});

test('three megabytes of bad or repeating JSON take linear time', (t) => {
  const started = performance.now();
  t.throws(() => parse(`[${'"a",'.repeat(700_000)}`));
  t.throws(() => parse(`"${'\\u0041'.repeat(500_000)}`));
  t.throws(() => parse(`${'1'.repeat(3_000_000)}x`));
  t.is(
    parse(`{${Array.from({ length: 70_000 }, (_, i) => `"k${i}":1`).join()},"k0":2}`, true).duplicateFields.length,
    1,
  );
  t.true(performance.now() - started < 30_000);
});

test('a document of too many values is refused before it is parsed', (t) => {
  for (const unit of ['0,', '{},', '[],', '"",', '{"a":1},']) {
    const error = t.throws(() => parse(`[${unit.repeat(Math.floor(3_000_000 / unit.length))}0]`)) as DocumentError;
    t.is(error.reason, 'tooLarge');
    t.is(error.message, 'the document has more than 150000 values');
  }
  t.notThrows(() => parse(`["${',:{['.repeat(700_000)}"]`), 'text has no values');
});

const document = fc.json({ maxDepth: 5 });

test('property: the scanner accepts what JSON.parse accepts', (t) => {
  fc.assert(
    fc.property(document, fc.nat(), fc.string({ maxLength: 2 }), (text, at, noise) => {
      const cut = at % (text.length + 1);
      for (const candidate of [
        text,
        text.slice(0, cut) + noise + text.slice(cut),
        text.slice(0, cut) + text.slice(cut + 1),
      ]) {
        const bytes = Buffer.from(candidate);
        let valid = true;
        try {
          JSON.parse(bytes.toString());
        } catch {
          valid = false;
        }
        let scanned = true;
        try {
          new JsonScanner(bytes).duplicateFields();
        } catch (error) {
          t.true(error instanceof DocumentError);
          scanned = false;
        }
        t.is(scanned, valid, JSON.stringify(candidate));
      }
    }),
    { numRuns: 1000 },
  );
});

test('property: members and depth are counted from bytes as from values', (t) => {
  const members = (v: unknown): number =>
    typeof v === 'object' && v !== null
      ? Object.values(v).reduce<number>(
          (sum, item) => sum + members(item),
          Array.isArray(v) ? 0 : Object.keys(v).length,
        )
      : 0;
  const depth = (v: unknown): number =>
    typeof v === 'object' && v !== null ? 1 + Math.max(0, ...Object.values(v).map(depth)) : 0;
  fc.assert(
    fc.property(document, (text) => {
      const bytes = Buffer.from(text);
      const value = JSON.parse(text) as unknown;
      // fc.json never repeats a key.
      const survey = surveyJson(bytes);
      t.is(survey.members, members(value));
      t.is(survey.depth, depth(value));
    }),
    { numRuns: 500 },
  );
});
