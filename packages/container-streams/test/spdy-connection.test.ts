import { duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import { FakeClock } from '@keelson/core/runtime';
import test from 'ava';
import { controlFrame, dataHeader, FrameType, numbersFrame } from '../src/spdy/frames.ts';
import { SpdyConnection } from '../src/spdy/spdy-connection.ts';
import type { SpdyStream } from '../src/spdy/spdy-stream.ts';
import { SpdyClient } from '../src/testing/spdy-client.ts';

/** Resolves with the first value that is neither undefined nor false. */
async function until<T>(probe: () => T | undefined | false): Promise<T> {
  for (const deadline = performance.now() + 10_000; performance.now() < deadline; ) {
    const value = probe();
    if (value !== undefined && value !== false) return value;
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  throw new Error('the condition did not hold within 10 s');
}

const refusedStream = 3;
const cancelled = 5;
const goneAwayProtocolError = 1;

function pair(onStream: (stream: SpdyStream) => void = () => {}) {
  const [near, far] = duplexPair();
  const clock = new FakeClock();
  const streams: SpdyStream[] = [];
  let active = 0;
  const connection = new SpdyConnection({
    socket: near,
    clock,
    onActivity: () => {
      active += 1;
    },
    onStream: (stream) => {
      streams.push(stream);
      onStream(stream);
    },
  });
  return { connection, clock, client: new SpdyClient(far, Buffer.alloc(0), undefined), streams, active: () => active };
}

test('a stream is replied to, carries data in both directions, and each direction ends independently', async (t) => {
  const { client, streams } = pair((stream) => stream.pipe(stream));
  const stream = await client.open({ streamtype: 'data', port: '80' });
  await stream.answered;
  t.deepEqual(Object.fromEntries(streams[0]!.headers), { streamtype: 'data', port: '80' });
  const much = 'x'.repeat(200_000);
  stream.send('hello ');
  stream.send(much, true);
  t.is(await text(stream.incoming), `hello ${much}`);
});

test('a stream may be opened and finished with one frame', async (t) => {
  const { client, streams } = pair((stream) => stream.resume());
  const stream = await client.open({}, true);
  await stream.answered;
  streams[0]!.end('answer');
  t.is(await text(stream.incoming), 'answer');
});

test('streams that are rejected, abandoned or reset send RST_STREAM, and the others continue', async (t) => {
  const { client, streams } = pair((stream) => {
    if (stream.headers.has('bad')) throw new Error('no');
    stream.on('data', (chunk) => stream.write(chunk));
  });
  const refused = await client.open({ bad: 'yes' });
  t.is(await refused.reset, cancelled);
  const left = await client.open({});
  await left.answered;
  streams[1]!.destroy();
  t.is(await left.reset, cancelled);
  left.send('late');
  const other = await client.open({});
  await other.answered;
  const reset = await client.open({});
  await reset.answered;
  reset.resetIt();
  await until(() => streams[3]!.destroyed);
  other.send('still here');
  other.incoming.setEncoding('utf8');
  await until(() => other.incoming.readableLength > 0);
  t.is(other.incoming.read(), 'still here');
});

test('pings are answered and do not count as activity; unknown frames are skipped', async (t) => {
  const { client, connection, active } = pair();
  client.socket.write(numbersFrame(FrameType.settings, 0));
  client.socket.write(numbersFrame(FrameType.windowUpdate, 1, 1000));
  client.socket.write(numbersFrame(FrameType.goAway, 0, 0));
  client.socket.write(controlFrame(77, Buffer.from('whatever')));
  client.ping(1);
  client.ping(3);
  connection.ping();
  await until(() => client.pongs.length === 3);
  t.deepEqual([...client.pongs].sort(), [1, 2, 3]);
  t.is(active(), 0);
});

test('a stream that is not read applies back pressure to the connection', async (t) => {
  const { client, streams } = pair();
  const stream = await client.open({});
  await stream.answered;
  const chunk = 'x'.repeat(30_000);
  let sent = 0;
  while (client.socket.writableLength < 1_000_000) {
    stream.send(chunk);
    sent += chunk.length;
  }
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.true(streams[0]!.readableLength < 200_000);
  t.true(client.socket.writableLength > 500_000);
  stream.send('', true);
  t.is((await text(streams[0]!)).length, sent);
});

test('writes to a peer that does not read are delayed', async (t) => {
  const { client, streams } = pair();
  const stream = await client.open({});
  await stream.answered;
  let written = 0;
  const more = () => {
    while (written < 10_000_000) {
      written += 10_000;
      if (!streams[0]!.write(Buffer.alloc(10_000))) return;
    }
    streams[0]!.end();
  };
  streams[0]!.on('drain', more);
  more();
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.true(written < 1_000_000, `${written} bytes were taken`);
  t.is((await text(stream.incoming)).length, 10_000_000);
});

test('pending data is sent before the close, and a peer that does not close is disconnected after a timeout', async (t) => {
  const { client, connection, clock, streams } = pair();
  const stream = await client.open({});
  await stream.answered;
  streams[0]!.end('last words');
  const closing = connection.close();
  t.is(await text(stream.incoming), 'last words');
  await until(() => client.goneAway === 0);
  clock.advance(10_000);
  await closing;
  t.true(streams[0]!.destroyed);
});

test('there are at most a thousand streams', async (t) => {
  const { client } = pair();
  for (let count = 0; count < 1000; count += 1) await client.open({});
  t.is(await (await client.open({})).reset, refusedStream);
});

const syn = (id: number, block: Buffer) => {
  const content = Buffer.alloc(10);
  content.writeUInt32BE(id);
  return controlFrame(FrameType.synStream, Buffer.concat([content, block]));
};

test('a peer that violates the protocol receives GOAWAY, and its connection is closed', async (t) => {
  for (const [what, bytes] of [
    ['an even number', async (client: SpdyClient) => syn(2, await client.block({}))],
    ['number nought', async (client: SpdyClient) => syn(0, await client.block({}))],
    [
      'a number again',
      async (client: SpdyClient) => Buffer.concat([syn(5, await client.block({})), syn(5, await client.block({}))]),
    ],
    ['headers that are none', async () => syn(1, Buffer.from('rubbish'))],
    ['a short frame', async () => controlFrame(FrameType.synStream, Buffer.alloc(9))],
    ['a short ping', async () => controlFrame(FrameType.ping, Buffer.alloc(3))],
    ['another version', async () => Buffer.from('8002000600000004', 'hex')],
    ['a long frame', async () => controlFrame(FrameType.headers, Buffer.alloc(20_000))],
  ] as const) {
    const { client, connection } = pair();
    client.socket.write(await bytes(client));
    await connection.closed;
    await until(() => client.goneAway === goneAwayProtocolError);
    t.pass(what);
  }
});

/** mulberry32 */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

test('arbitrary input continues or ends its connection, and has no other effect', async (t) => {
  const seed = Number(process.env['KEELSON_TEST_SEED'] ?? 20_261_122);
  t.log(`seed ${seed}`);
  const random = randomOf(seed);
  for (let round = 0; round < 200; round += 1) {
    const { client, connection } = pair((stream) => stream.pipe(stream));
    const good = [
      syn(1, await client.block({ streamtype: 'data' })),
      Buffer.concat([dataHeader(1, 5, false), Buffer.from('hello')]),
      syn(3, await client.block({ streamtype: 'error' })),
      numbersFrame(FrameType.ping, 1),
      numbersFrame(FrameType.rstStream, 3, 1),
      dataHeader(1, 0, true),
    ];
    const bytes = Buffer.concat(good);
    for (let changes = random(6); changes >= 0; changes -= 1) bytes[random(bytes.length)] = random(256);
    client.socket.end(bytes.subarray(0, random(2) === 0 ? bytes.length : random(bytes.length)));
    await connection.closed;
  }
  t.pass();
});
