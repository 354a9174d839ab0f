import test from 'ava';
import fc from 'fast-check';
import { labelSelectorErrors } from '../../src/meta/names.ts';
import { SelectorError } from '../../src/meta/selector-error.ts';
import {
  type FieldSelector,
  type LabelSelector,
  labelSelectorOf,
  labelSetSelector,
  parseFieldSelector,
  parseLabelSelector,
} from '../../src/meta/selectors.ts';

const samples = [{}, { a: 'b' }, { a: '' }, { a: '5', b: 'c' }, { b: '-3', in: 'in' }, { a: 'c', 'x/y': 'z' }] as const;

function hits(selector: LabelSelector): string {
  return samples.map((labels) => (selector.matches(labels) ? '1' : '0')).join('');
}

/** Selector, and which of the samples it matches; results of the reference library. */
const labelCases: readonly [string, string][] = [
  ['', '111111'],
  [' ', '111111'],
  ['a', '011101'],
  ['!a', '100010'],
  ['! a', '100010'],
  ['a=b', '010000'],
  ['a==b', '010000'],
  [' a = b ', '010000'],
  ['a=', '001000'],
  ['a in ()', '001000'],
  ['a in (,)', '001000'],
  ['a in (b,)', '011000'],
  ['a in (b,c)', '010001'],
  ['a in(b)', '010000'],
  ['a\tin\n(b)', '010000'],
  ['a notin (b,c)', '101110'],
  ['a!=b', '101111'],
  ['a>4', '000100'],
  ['a<4', '000000'],
  ['a>5', '000000'],
  ['a=5,b', '000100'],
  ['x/y', '000001'],
  ['in', '000010'],
  ['in=in', '000010'],
  ['in in (in)', '000010'],
  ['a=in', '000000'],
  ['a,!b', '011001'],
];

test('label selectors match as on the reference server', (t) => {
  for (const [text, expected] of labelCases) t.is(hits(parseLabelSelector(text)), expected, text);
});

test('objects without labels are objects with no labels', (t) => {
  t.true(parseLabelSelector('!a').matches(undefined));
  t.false(parseLabelSelector('a').matches(undefined));
});

test('inherited names are no labels', (t) => {
  t.false(parseLabelSelector('constructor').matches({}));
  t.true(parseLabelSelector('!toString').matches({}));
  t.true(parseLabelSelector('constructor=x').matches({ constructor: 'x' } as never));
});

const badLabelSelectors: readonly [string, RegExp][] = [
  ['=', /^unable to parse requirement: found '=', expected: !, identifier, or 'end of string'$/],
  ['a,', /found '', expected: identifier after ','/],
  ['a b', /found 'b', expected: in, notin, =, ==, !=, gt, lt/],
  ['a=b c', /found 'c', expected: ',' or 'end of string'/],
  ['a in b', /found 'b', expected: '\('/],
  ['a in (b', /found '', expected: ',', or '\)'/],
  ['a in (b c)', /found 'c', expected: ',', or '\)'/],
  ['!a=b', /found '=', expected/],
  ['a=b=c', /found '=', expected/],
  ['a>b', /value must be an integer/],
  ['a>', /value must be an integer/],
  ['a>-3', /^unable to parse requirement: values\[0\]\[a\]: Invalid value: "-3"/],
  ['a/b/c', /^unable to parse requirement: key: Invalid value: "a\/b\/c"/],
  ['__proto__', /key: Invalid value/],
  ['a=b/c', /values\[0\]\[a\]: Invalid value/],
  [`${'a'.repeat(64)}`, /no more than 63/],
];

test('invalid label selectors are rejected with the position of the error', (t) => {
  for (const [text, message] of badLabelSelectors)
    t.throws(() => parseLabelSelector(text), { instanceOf: SelectorError, message }, text);
});

test('selectors are bounded in length and number of requirements', (t) => {
  t.throws(() => parseLabelSelector(`a${' '.repeat(9000)}`), { instanceOf: SelectorError, message: /8192/ });
  const many = (count: number) => Array.from({ length: count }, (_, index) => `k${index}`).join(',');
  t.is(parseLabelSelector(many(100)).requirements.length, 100);
  t.throws(() => parseLabelSelector(many(101)), { instanceOf: SelectorError });
  t.throws(() => parseFieldSelector(`a=${'b'.repeat(9000)}`), { instanceOf: SelectorError });
  const fields = (count: number) => Array.from({ length: count }, (_, index) => `k${index}=1`).join(',');
  t.is(parseFieldSelector(fields(100)).requirements.length, 100);
  t.throws(() => parseFieldSelector(fields(101)), { instanceOf: SelectorError });
});

test('equal label selectors have equal texts', (t) => {
  const text = (selector: string) => String(parseLabelSelector(selector));
  t.is(text('b==1, a in (z,y,z) ,c!=,!d,e>5'), '!d,a in (y,z),b=1,c!=,e>5');
  t.is(text('a in (b)'), text('a=b'));
  t.is(text('b,a'), text('a, b ,b'));
});

test('the JSON form means the same as the text form', (t) => {
  const selector = labelSelectorOf({
    matchLabels: { app: 'web' },
    matchExpressions: [
      { key: 'tier', operator: 'In', values: ['b', 'a'] },
      { key: 'env', operator: 'NotIn', values: ['dev'] },
      { key: 'x', operator: 'Exists' },
      { key: 'y', operator: 'DoesNotExist', values: [] },
    ],
  });
  t.is(String(selector), String(parseLabelSelector('app=web,tier in (a,b),env!=dev,x,!y')));
  t.true(labelSelectorOf({}).empty);
  t.is(hits(labelSelectorOf(undefined)), '000000');
  t.false(labelSelectorOf(null).empty);
  t.is(hits(labelSetSelector({ a: '5', b: 'c' })), '000100');
  t.throws(() => labelSelectorOf({ matchExpressions: [{ key: 'a', operator: 'Gt', values: ['1'] }] }), {
    instanceOf: SelectorError,
  });
});

test('errors of the JSON form name their fields', (t) => {
  const errors = labelSelectorErrors(
    {
      matchLabels: { 'a b': 'c d' },
      matchExpressions: [
        { key: 'a', operator: 'In' },
        { key: 'a', operator: 'Exists', values: ['b'] },
        { key: '', operator: 'Equals', values: ['b c'] },
      ],
    },
    'spec.selector',
  );
  t.deepEqual(
    errors.map((error) => `${error.reason} ${error.field}`),
    [
      'FieldValueInvalid spec.selector.matchLabels',
      'FieldValueInvalid spec.selector.matchLabels',
      'FieldValueRequired spec.selector.matchExpressions[0].values',
      'FieldValueForbidden spec.selector.matchExpressions[1].values',
      'FieldValueInvalid spec.selector.matchExpressions[2].operator',
      'FieldValueInvalid spec.selector.matchExpressions[2].key',
      'FieldValueInvalid spec.selector.matchExpressions[2].key',
      'FieldValueInvalid spec.selector.matchExpressions[2].values[0]',
    ],
  );
});

function fieldHits(selector: FieldSelector): string {
  const objects: readonly Readonly<Record<string, string>>[] = [{}, { a: 'b' }, { a: 'x,y', b: '=' }, { b: 'c' }];
  return objects.map((object) => (selector.matches((field) => object[field] ?? '') ? '1' : '0')).join('');
}

test('field selectors match as on the reference server', (t) => {
  const cases: readonly [string, string][] = [
    ['', '1111'],
    [',,', '1111'],
    ['a=b', '0100'],
    ['a==b', '0100'],
    ['a!=b', '1011'],
    ['a=', '1001'],
    ['a!=', '0110'],
    ['a=x\\,y,b=\\=', '0010'],
    ['a=x\\,y,b!=\\=', '0000'],
    ['=', '1111'],
    [' a=b', '0000'],
  ];
  for (const [text, expected] of cases) t.is(fieldHits(parseFieldSelector(text)), expected, text);
});

test('invalid field selectors are rejected', (t) => {
  t.throws(() => parseFieldSelector('a'), {
    instanceOf: SelectorError,
    message: "invalid selector: 'a'; can't understand 'a'",
  });
  t.throws(() => parseFieldSelector('a=b,c'), { message: "invalid selector: 'a=b,c'; can't understand 'c'" });
  t.throws(() => parseFieldSelector('a=b=c'), { message: /unescaped character in value: =/ });
  t.throws(() => parseFieldSelector('a=\\x'), { message: /invalid escape sequence: \\x/ });
  t.throws(() => parseFieldSelector('a=\\'), { message: /invalid escape sequence/ });
});

const pieces = [
  'a',
  'b',
  'x/y',
  'in',
  'notin',
  '=',
  '==',
  '!=',
  '!',
  '>',
  '<',
  '(',
  ')',
  ',',
  ' ',
  '5',
  '\\',
  '\\,',
  '\\=',
  'in (',
  'notin (',
];
const scribble = fc
  .array(fc.oneof(fc.constantFrom(...pieces), fc.string({ maxLength: 2 })), { maxLength: 8 })
  .map((parts) => parts.join(''));

function roundTrips(parse: (text: string) => { toString(): string }): (text: string) => boolean {
  return (text) => {
    let first: string;
    try {
      first = String(parse(text));
    } catch (error) {
      return error instanceof SelectorError;
    }
    return String(parse(first)) === first;
  };
}

test('every text is either rejected as a selector, or has a canonical form that parses to the same form', (t) => {
  fc.assert(fc.property(scribble, roundTrips(parseLabelSelector)), { numRuns: 3000 });
  fc.assert(fc.property(scribble, roundTrips(parseFieldSelector)), { numRuns: 3000 });
  t.pass();
});

test('the canonical text of a label selector matches the same labels', (t) => {
  fc.assert(
    fc.property(scribble, (text) => {
      let selector: LabelSelector;
      try {
        selector = parseLabelSelector(text);
      } catch {
        return true;
      }
      return hits(parseLabelSelector(String(selector))) === hits(selector);
    }),
    { numRuns: 3000 },
  );
  t.pass();
});

test('any values of a field selector survive their canonical text', (t) => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (value) => {
      const text = `a=${value.replace(/[\\,=]/g, '\\$&')}`;
      const [requirement] = parseFieldSelector(String(parseFieldSelector(text))).requirements;
      return requirement?.value === value;
    }),
  );
  t.pass();
});
