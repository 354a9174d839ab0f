import { constants, createDeflate } from 'node:zlib';
import test from 'ava';
import { headerDictionary } from '../src/spdy/dictionary.ts';
import {
  type ControlFrame,
  controlFrame,
  type DataPiece,
  dataHeader,
  FrameReader,
  FrameType,
  numbersFrame,
  SpdyProtocolError,
} from '../src/spdy/frames.ts';
import { HeaderReader, HeaderWriter, plainHeaderBlock } from '../src/spdy/header-blocks.ts';

const frames = (reader: FrameReader, ...chunks: Buffer[]) => chunks.flatMap((chunk) => [...reader.read(chunk)]);

/** Pieces of one frame as one. */
function joined(parts: readonly (ControlFrame | DataPiece)[]): (ControlFrame | DataPiece)[] {
  const whole: (ControlFrame | DataPiece)[] = [];
  for (const part of parts) {
    const before = whole.at(-1);
    if (part.kind === 'data' && before?.kind === 'data' && before.streamId === part.streamId && !before.last)
      whole[whole.length - 1] = { ...part, content: Buffer.concat([before.content, part.content]) };
    else whole.push(part);
  }
  return whole;
}

const data = (streamId: number, text: string, last = false) =>
  Buffer.concat([dataHeader(streamId, text.length, last), Buffer.from(text)]);

test('frames are parsed as they were written, wherever the bytes are split', (t) => {
  const bytes = Buffer.concat([
    controlFrame(FrameType.synStream, Buffer.from('0123456789abc'), true),
    data(1, 'some content'),
    numbersFrame(FrameType.ping, 7),
    data(0x7fff_ffff, '', true),
    numbersFrame(FrameType.rstStream, 5, 3),
    data(3, 'x', true),
  ]);
  const expected = [
    { kind: 'control', type: 1, last: true, content: Buffer.from('0123456789abc') },
    { kind: 'data', streamId: 1, last: false, content: Buffer.from('some content') },
    { kind: 'control', type: 6, last: false, content: Buffer.from([0, 0, 0, 7]) },
    { kind: 'data', streamId: 0x7fff_ffff, last: true, content: Buffer.alloc(0) },
    { kind: 'control', type: 3, last: false, content: Buffer.from([0, 0, 0, 5, 0, 0, 0, 3]) },
    { kind: 'data', streamId: 3, last: true, content: Buffer.from('x') },
  ];
  t.deepEqual(frames(new FrameReader(100), bytes) as unknown[], expected);
  for (let cut = 1; cut < bytes.length; cut += 1) {
    const reader = new FrameReader(100);
    t.deepEqual(
      joined(frames(reader, bytes.subarray(0, cut), bytes.subarray(cut))) as unknown[],
      expected,
      `cut at ${cut}`,
    );
  }
  const single = Array.from(bytes, (byte) => Buffer.of(byte));
  t.deepEqual(joined(frames(new FrameReader(100), ...single)) as unknown[], expected);
});

test('a data frame of maximum size is forwarded in chunks and never buffered', (t) => {
  const reader = new FrameReader(100);
  const greatest = 0xff_ffff;
  t.is(frames(reader, dataHeader(1, greatest, true)).length, 0);
  const chunk = Buffer.alloc(65_536, 1);
  let seen = 0;
  let last = false;
  while (seen < greatest) {
    for (const piece of reader.read(chunk.subarray(0, Math.min(chunk.length, greatest - seen)))) {
      if (piece.kind !== 'data') continue;
      t.false(last);
      seen += piece.content.length;
      last = piece.last;
      t.is(piece.content.buffer, chunk.buffer, 'no copy');
    }
  }
  t.true(last);
});

test('control frames that are too long or of another version are rejected before they are buffered', (t) => {
  const tooLong = controlFrame(FrameType.headers, Buffer.alloc(101)).subarray(0, 8);
  t.throws(() => frames(new FrameReader(100), tooLong), { instanceOf: SpdyProtocolError, message: /has 101 bytes/ });
  t.throws(() => frames(new FrameReader(100), Buffer.from('8002000600000004', 'hex')), { message: /another version/ });
});

/** Blocks as other programs write them: compressed, with the dictionary, one stream for all. */
async function compressed(...blocks: Buffer[]): Promise<Buffer[]> {
  const deflate = createDeflate({ dictionary: headerDictionary, level: 9 });
  const written: Buffer[] = [];
  for (const block of blocks) {
    const chunks: Buffer[] = [];
    const take = (chunk: Buffer) => chunks.push(chunk);
    deflate.on('data', take);
    deflate.write(block);
    await new Promise<void>((resolve) => deflate.flush(constants.Z_SYNC_FLUSH, resolve));
    deflate.off('data', take);
    written.push(Buffer.concat(chunks));
  }
  return written;
}

test('header blocks are decoded, compressed with the dictionary or stored uncompressed', async (t) => {
  t.is(headerDictionary.length, 1423);
  const first = { streamtype: 'error', port: '8080', requestID: '0' };
  const second = { streamtype: 'data', text: 'ö€ '.repeat(50) };
  const [one, two] = await compressed(plainHeaderBlock(first), plainHeaderBlock(second));
  const reader = new HeaderReader(1000);
  t.deepEqual(Object.fromEntries(await reader.read(one!)), { streamtype: 'error', port: '8080', requestid: '0' });
  t.true(two!.length < 100, 'later blocks refer to earlier ones');
  t.deepEqual(Object.fromEntries(await reader.read(two!)), second);
  reader.close();
  const writer = new HeaderWriter();
  const own = new HeaderReader(1000);
  for (const headers of [{}, { a: 'b' }, { ...second }])
    t.deepEqual(Object.fromEntries(await own.read(writer.write(headers))), headers);
  own.close();
});

test('a header block that is too long, truncated, duplicated or invalid is rejected in bounded memory', async (t) => {
  const read = async (block: Buffer, limit = 1000) => {
    const reader = new HeaderReader(limit);
    try {
      return await reader.read(block);
    } finally {
      reader.close();
    }
  };
  const [bomb] = await compressed(plainHeaderBlock({ a: 'x'.repeat(5_000_000) }));
  t.true(bomb!.length < 16_384, 'small on the wire');
  for (const limit of [1000, 16_384]) await t.throwsAsync(read(bomb!, limit), { instanceOf: SpdyProtocolError });
  const two = Buffer.concat([Buffer.from([0, 0, 0, 2]), ...[1, 2].map(() => plainHeaderBlock({ a: 'b' }).subarray(4))]);
  for (const [plain, message] of [
    [two, /"a" occurs twice/],
    [Buffer.alloc(0), /ends too early/],
    [Buffer.from([0, 0, 0, 1]), /ends too early/],
    [Buffer.from([0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 1]), /ends too early/],
    [Buffer.from([0xff, 0xff, 0xff, 0xff]), /ends too early/],
  ] as const) {
    const [block] = await compressed(plain);
    await t.throwsAsync(read(block!), { instanceOf: SpdyProtocolError, message });
  }
  await t.throwsAsync(read(Buffer.from('no zlib at all')), {
    instanceOf: SpdyProtocolError,
    message: /cannot be read/,
  });
});
