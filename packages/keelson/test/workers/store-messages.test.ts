import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import test from 'ava';
import { Inbox, Outbox, type SentBytes } from '../../src/workers/store-messages.ts';

/** Sends values, one per message, and returns what the other side reads. */
async function passed(values: readonly Uint8Array[]): Promise<Buffer[]> {
  const { port1, port2 } = new MessageChannel();
  const outbox = new Outbox<SentBytes>(port1);
  const inbox = new Inbox<SentBytes>();
  const read: Buffer[] = [];
  for (const value of values) {
    outbox.send(outbox.bytes(value));
    const [post] = await once(port2, 'message');
    for (const bytes of inbox.receive(post)) read.push(inbox.bytes(bytes));
  }
  port1.close();
  return read;
}

test('values of every length arrive, small ones in shared blocks', async (t) => {
  const values = [0, 1, 1000, 8192, 1000, 8193, 1_000_000, 1].map((length, i) => new Uint8Array(length).fill(i + 1));
  const read = await passed(values);
  t.is(read.length, values.length);
  for (const [i, value] of values.entries()) {
    t.true(read[i]?.equals(value), `value ${i} of ${value.length} bytes arrived with ${read[i]?.length} bytes`);
  }
  t.is(read[1]?.buffer, read[2]?.buffer, 'both are in one block');
});

test('values in shared memory are not copied, also when their block is no longer retained', async (t) => {
  const shared = Array.from({ length: 40 }, (_, i) => new Uint8Array(new SharedArrayBuffer(64)).fill(i));
  const read = await passed([...shared, ...shared]);
  t.deepEqual(
    read,
    [...shared, ...shared].map((value) => Buffer.from(value)),
  );
  shared[0]?.fill(99);
  t.deepEqual([read[0]?.[0], read[40]?.[0]], [99, 99]);
});
