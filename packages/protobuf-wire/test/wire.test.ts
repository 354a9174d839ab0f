import test from 'ava';
import fc from 'fast-check';
import { WireReader, WireWriter } from '../src/index.ts';

const seed = Number(process.env['KEELSON_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const hex = (writer: WireWriter) => writer.finish().toString('hex');
const reader = (digits: string) => new WireReader(Buffer.from(digits, 'hex'));
const truncated = { instanceOf: RangeError, message: /ends within/ };

test('fields have the encoding of the format, and zero and false are omitted', (t) => {
  t.is(hex(new WireWriter().integer(1, 150)), '089601');
  t.is(hex(new WireWriter().integer(3, -1)), '18ffffffffffffffffff01');
  t.is(hex(new WireWriter().integer(1, 2n ** 64n - 1n)), '08ffffffffffffffffff01');
  t.is(hex(new WireWriter().integer(1, 0).integer(2, 0n).flag(3, false)), '');
  t.is(hex(new WireWriter().flag(16, true)), '800101');
  t.is(hex(new WireWriter().bytes(2, Buffer.from('test'), Buffer.from('ing'))), '120774657374696e67');
  t.is(hex(new WireWriter().bytes(2)), '1200');
  t.is(hex(new WireWriter().packed(6, [3, 270, 86_942])), '3206038e029ea705');
  t.is(hex(new WireWriter().message(3, new WireWriter().integer(1, 150))), '1a03089601');
});

test('encoded messages are decoded unchanged, with any numbers, lengths and fields', (t) => {
  const field = fc.integer({ min: 1, max: 2 ** 28 - 1 });
  const entry = fc.tuple(
    field,
    fc.maxSafeInteger(),
    fc.bigInt({ min: 1n, max: 2n ** 64n - 1n }),
    fc.string({ maxLength: 300 }),
  );
  const property = fc.property(entry, ([number, integer, bigint, text]) => {
    const inner = new WireWriter().integer(number, integer || 1).integer(15, bigint);
    const whole = new WireWriter().message(number, inner).bytes(1, Buffer.from(text)).integer(2, 7).finish();
    const read = new WireReader(whole);
    t.is(read.next(), number);
    read.within((nested) => {
      t.is(nested.next(), number);
      t.is(nested.integer(), integer || 1);
      t.is(nested.next(), 15);
      t.is(nested.bigint(), bigint);
      t.is(nested.next(), 0);
      t.true(nested.atEnd);
    });
    t.is(read.next(), 1);
    t.true(read.isDelimited);
    t.is(read.text(), Buffer.from(text).toString());
    t.is(read.next(), 2);
    t.false(read.isDelimited);
    t.is(read.integer(), 7);
    t.is(read.next(), 0);
  });
  fc.assert(property, { seed, numRuns: 300 });
});

test('bytes are views, and a nested message that is not read to its end does not affect the enclosing one', (t) => {
  const buffer = new WireWriter()
    .message(1, new WireWriter().integer(1, 5).integer(2, 6))
    .bytes(2, Buffer.from('ab'))
    .finish();
  const read = new WireReader(buffer);
  read.next();
  t.is(
    read.within((nested) => nested.next()),
    1,
  );
  t.is(read.next(), 2);
  t.is(read.bytes().buffer, buffer.buffer);
});

test('unknown fields of every wire type are skipped; groups and unterminated numbers are rejected', (t) => {
  // Fields 1 to 4: number, eight bytes, delimited, four bytes; then field 5.
  const read = reader(`08ffff03${'11'}${'00'.repeat(8)}1a0261622500000000${'2801'}`);
  for (const field of [1, 2, 3, 4]) {
    t.is(read.next(), field);
    read.skip();
  }
  t.is(read.next(), 5);
  t.is(read.integer(), 1);
  const group = reader('0b');
  group.next();
  t.throws(() => group.skip(), { instanceOf: RangeError, message: /unknown wire type 3/ });
  const endless = reader(`08${'ff'.repeat(11)}01`);
  endless.next();
  t.throws(() => endless.integer(), { instanceOf: RangeError, message: /more than ten bytes/ });
});

test('nothing is read beyond the end of the buffer or of the enclosing message', (t) => {
  t.throws(() => reader('80').next(), truncated);
  for (const cut of ['0a05616263', '0aff', '0a']) {
    const read = reader(cut);
    read.next();
    t.throws(() => read.bytes(), truncated, cut);
  }
  // The nested message has one byte, the number in it would need a byte of the message around it.
  for (const inner of ['0a0108', '0a0208ff']) {
    const read = reader(`${inner}01`);
    read.next();
    t.throws(
      () =>
        read.within((nested) => {
          nested.next();
          return nested.integer();
        }),
      truncated,
      inner,
    );
  }
});
