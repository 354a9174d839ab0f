import { crc32, gunzipSync } from 'node:zlib';
import { pieceBytes } from '@keelson/core/internal';
import test from 'ava';
import fc from 'fast-check';
import { crc32Shift, DeflatedParts, deflated, gzipBody, joinedCrc32 } from '../src/exchange/gzip-pieces.ts';
import { PiecePool } from '../src/exchange/list-body.ts';

async function* groupsOf(groups: readonly (readonly Uint8Array[])[]): AsyncGenerator<readonly Buffer[]> {
  for (const group of groups) yield group.map((piece) => Buffer.from(piece));
}

async function bytesOf(body: AsyncIterable<Buffer[]>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const group of body) pieces.push(...group);
  return Buffer.concat(pieces);
}

test('the checksum of two parts is combined from their checksums', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ maxLength: 300 }), (first, second) => {
      const joined = joinedCrc32(crc32(first), crc32(second), crc32Shift(second.length));
      t.is(joined, crc32(Buffer.concat([first, second])));
    }),
  );
  const long = Buffer.alloc(5_000_000, 'abc');
  t.is(joinedCrc32(crc32('x'), crc32(long), crc32Shift(long.length)), crc32(Buffer.concat([Buffer.from('x'), long])));
});

test('a body of any pieces is one gzip member that contains all of them', async (t) => {
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 50 }),
    fc.integer({ min: 500, max: 70_000 }).map((length) => Buffer.alloc(length, 'some text that repeats')),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(piece, { maxLength: 4 }), { maxLength: 4 }), async (groups) => {
      const body = await bytesOf(gzipBody(groupsOf(groups), deflated));
      t.true(gunzipSync(body).equals(Buffer.concat(groups.flat())));
    }),
    { numRuns: 50 },
  );
});

const text = 'some text that repeats';
/** A part in two pieces that counts how often they are asked for. */
function partOf(bytes: Buffer) {
  const part = {
    content: {},
    asked: 0,
    pieces: () => {
      part.asked += 1;
      return [bytes.subarray(0, 10), bytes.subarray(10)];
    },
  };
  return part;
}

test('a part is compressed once for concurrent and for later senders, by what identifies its bytes', async (t) => {
  const parts = new DeflatedParts(1024 * 1024);
  const part = partOf(Buffer.alloc(100_000, text));
  const [first, second] = await Promise.all([parts.of(part), parts.of(part)]);
  t.is(first, second);
  t.is(first.length, 100_000);
  const elsewhere = { ...partOf(Buffer.alloc(100_000, text)), content: part.content };
  t.is(await parts.of(elsewhere), first);
  t.deepEqual([part.asked, elsewhere.asked], [1, 0]);
  t.not(await parts.of(partOf(Buffer.alloc(100_000, text))), first);
});

test('a part whose bytes cannot be created is not kept', async (t) => {
  const parts = new DeflatedParts(1024 * 1024);
  const content = {};
  const fails = () => {
    throw new Error('damaged');
  };
  await t.throwsAsync(parts.of({ content, pieces: fails }), { message: 'damaged' });
  t.is((await parts.of({ content, pieces: () => [Buffer.alloc(1000, text)] })).length, 1000);
});

test('a kept part occupies no more memory than its compressed bytes', async (t) => {
  const { bytes } = await new DeflatedParts(1024 * 1024).of(partOf(Buffer.alloc(100_000, text)));
  t.is(bytes.buffer.byteLength, bytes.length);
});

test('retained compressed bytes do not exceed their limit', async (t) => {
  const { bytes } = await deflated(Buffer.alloc(100_000, text));
  const parts = new DeflatedParts(2 * bytes.length);
  const all = Array.from({ length: 3 }, () => partOf(Buffer.alloc(100_000, text)));
  for (const part of all) await parts.of(part);
  for (const part of [...all].reverse()) await parts.of(part);
  t.deepEqual(
    all.map(({ asked }) => asked),
    [2, 1, 1],
  );
});

test('a buffer is reused after its piece is released, once for each release', (t) => {
  const pool = new PiecePool(2);
  const buffer = pool.take();
  t.is(buffer.length, pieceBytes);
  const piece = buffer.subarray(0, 10);
  t.true(pool.owns(piece));
  pool.giveBack(piece);
  t.false(pool.owns(piece));
  pool.giveBack(piece);
  t.is(pool.take().buffer, buffer.buffer);
  t.not(pool.take().buffer, buffer.buffer);
});

test('buffers of other owners are never reused, and free buffers do not exceed their limit', (t) => {
  const pool = new PiecePool(1);
  const other = Buffer.alloc(pieceBytes);
  t.false(pool.owns(other));
  pool.giveBack(other);
  const [first, second] = [pool.take(), pool.take()];
  pool.giveBack(first);
  pool.giveBack(second);
  t.is(pool.take().buffer, first.buffer);
  const fresh = pool.take().buffer;
  t.false([first.buffer, second.buffer, other.buffer].includes(fresh));
});
