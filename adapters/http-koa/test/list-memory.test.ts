import test from 'ava';
import { ListMemory } from '../src/exchange/list-body.ts';

test('free buffers of lists do not exceed their budget', (t) => {
  const reused = (listBuffersBytes: number) => {
    const { buffers } = new ListMemory({ listBuffersBytes, compressedListsBytes: 0, recentBodiesBytes: 0 });
    const taken = [buffers.take(), buffers.take()];
    for (const buffer of taken) buffers.giveBack(buffer);
    return [buffers.take(), buffers.take()].filter((next) => taken.some((own) => own.buffer === next.buffer)).length;
  };
  t.is(reused(4 * 1024 * 1024), 2);
  t.is(reused(64 * 1024), 1);
  t.is(reused(0), 0);
});

test('compressed parts of lists do not exceed their budget', async (t) => {
  const partOf = (text: string) => ({ content: {}, pieces: () => [Buffer.alloc(100_000, text)] });
  const part = partOf('some text of a list ');
  const kept = async (compressedListsBytes: number) => {
    const { deflated } = new ListMemory({ listBuffersBytes: 0, compressedListsBytes, recentBodiesBytes: 0 });
    const { bytes } = await deflated.of(part);
    // The budget drops the oldest part when there is another one.
    await deflated.of(partOf('another text'));
    await new Promise((resolve) => setImmediate(resolve));
    return (await deflated.of(part)).bytes === bytes;
  };
  t.true(await kept(1024 * 1024));
  t.false(await kept(1));
});
