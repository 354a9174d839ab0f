import test from 'ava';
import fc from 'fast-check';
import {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  QuantityError,
  quantityMilliValue,
  quantityValue,
} from '../../src/meta/quantity.ts';

/** Text and canonical text; results of the reference library. */
const canonical: readonly [string, string][] = [
  ['0', '0'],
  ['-0.000', '0'],
  ['0Ki', '0'],
  ['0.5', '500m'],
  ['.5', '500m'],
  ['1.', '1'],
  ['+1', '1'],
  ['100', '100'],
  ['1000', '1k'],
  ['1000m', '1'],
  ['1500m', '1500m'],
  ['0.1', '100m'],
  ['1024Ki', '1Mi'],
  ['1536Ki', '1536Ki'],
  ['1.5Gi', '1536Mi'],
  ['0.5Ki', '512'],
  ['1Ki', '1Ki'],
  ['1023Ki', '1023Ki'],
  ['0.1Mi', '104857600m'],
  ['1e3', '1e3'],
  ['12e4', '120e3'],
  ['1E2', '100'],
  ['1.5e-1', '150e-3'],
  ['12E', '12E'],
  ['1000k', '1M'],
  ['123456789', '123456789'],
  ['1n', '1n'],
  ['0.0000000001', '1n'],
  ['-0.0000000001', '-1n'],
  ['1.0000000001', '1000000001n'],
  ['9223372036854775807', '9223372036854775807'],
  ['16Ei', '9223372036854775807'],
  ['-16Ei', '-9223372036854775807'],
  ['007', '7'],
  ['1000E', '1000E'],
];

test('canonical texts are those of the reference', (t) => {
  for (const [text, expected] of canonical) t.is(canonicalQuantity(text), expected, text);
});

test('canonical texts stay as they are', (t) => {
  for (const [, text] of canonical) t.is(formatQuantity(parseQuantity(text)), text);
});

const refused = [
  '',
  ' 1',
  '1 ',
  '.',
  '+',
  'Ki',
  '1K',
  '1ki',
  '1mi',
  '1.2.3',
  '1e',
  '1ee3',
  '1e1.5',
  '--1',
  '0x10',
  'NaN',
  '1Kii',
  'e3',
];

test('other texts are refused', (t) => {
  for (const text of refused) t.throws(() => parseQuantity(text), { instanceOf: QuantityError }, text);
});

test('huge exponents and long texts are refused at once', (t) => {
  for (const text of ['1e999999999', '1e-999999999', '9'.repeat(100_000), `1${'0'.repeat(5000)}Ei`]) {
    t.throws(() => parseQuantity(text), { instanceOf: QuantityError });
  }
  t.is(canonicalQuantity('1e-300'), '1e-9');
});

test('amounts compare exactly, whatever they are written with', (t) => {
  t.is(compareQuantities('1', '1000m'), 0);
  t.is(compareQuantities('1Ki', '1k'), 1);
  t.is(compareQuantities('0.1', '100000001n'), -1);
  t.is(compareQuantities('-1Gi', '1n'), -1);
  t.is(compareQuantities('9223372036854775807', '9223372036854775806'), 1);
});

test('whole and thousandth values are rounded up', (t) => {
  t.is(quantityValue('1Gi'), 1_073_741_824n);
  t.is(quantityValue('100m'), 1n);
  t.is(quantityMilliValue('0.5'), 500n);
  t.is(quantityMilliValue('1n'), 1n);
  t.is(quantityMilliValue('2'), 2000n);
});

test('sums keep the family of suffixes of the first', (t) => {
  t.is(addQuantities('1Gi', '512Mi'), '1536Mi');
  t.is(addQuantities('500m', '0.5'), '1');
  t.is(addQuantities('0', '1Ki'), '1Ki');
});

const anyQuantity = fc
  .tuple(
    fc.constantFrom('', '-', '+'),
    fc.bigInt({ min: 0n, max: 10n ** 18n }),
    fc.option(fc.nat(999_999_999)),
    fc.constantFrom('', 'n', 'u', 'm', 'k', 'M', 'G', 'T', 'P', 'E', 'Ki', 'Mi', 'Gi', 'Ti', 'e3', 'E-2', 'e+12'),
  )
  .map(([sign, whole, fraction, suffix]) => `${sign}${whole}${fraction === null ? '' : `.${fraction}`}${suffix}`);

test('the canonical text means the same amount and is its own canonical text', (t) => {
  fc.assert(
    fc.property(anyQuantity, (text) => {
      const short = canonicalQuantity(text);
      return compareQuantities(short, text) === 0 && formatQuantity(parseQuantity(short)) === short;
    }),
    { numRuns: 3000 },
  );
  t.pass();
});

test('any text gives an amount or a QuantityError', (t) => {
  const text = fc.oneof(fc.string(), fc.stringMatching(/^[-+0-9.eEinumkKMGTP]{0,20}$/));
  fc.assert(
    fc.property(text, (candidate) => {
      try {
        return typeof canonicalQuantity(candidate) === 'string';
      } catch (error) {
        return error instanceof QuantityError;
      }
    }),
    { numRuns: 3000 },
  );
  t.pass();
});
