import { constants, createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { Random } from '@keelson/conformance';
import test, { type ExecutionContext } from 'ava';
import { Channel, callClock } from '../src/net/channel.ts';
import { NotSentError, verdictOf } from '../src/net/etcd-errors.ts';
import { CallError, framed, MessageReader } from '../src/net/grpc-messages.ts';

/** The behaviour of a server by path; it answers calls to other paths. */
const behaviours: Readonly<Record<string, (stream: ServerHttp2Stream) => void>> = {
  '/refuse': (stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM),
  '/cancel': (stream) => stream.close(constants.NGHTTP2_CANCEL),
  '/html': (stream) => stream.respond({ ':status': 503 }, { endStream: true }),
  '/never': () => {},
  '/silent': (stream) => {
    stream.respond({ ':status': 200 });
    stream.end(framed(Buffer.from('x')));
  },
  '/fail': (stream) =>
    stream.respond({ ':status': 200, 'grpc-status': '8', 'grpc-message': 'too%20many requests' }, { endStream: true }),
  '/empty': (stream) => stream.respond({ ':status': 200, 'grpc-status': '0' }, { endStream: true }),
  '/bye': (stream) => {
    stream.session?.close();
    answered(stream);
  },
};

/** Answers with the request, half a message at a time. */
function answered(stream: ServerHttp2Stream): void {
  const parts: Buffer[] = [];
  stream.on('data', (part: Buffer) => parts.push(part));
  stream.on('end', () => {
    stream.respond({ ':status': 200 }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    const whole = Buffer.concat(parts);
    stream.write(whole.subarray(0, whole.length / 2));
    setImmediate(() => stream.end(whole.subarray(whole.length / 2)));
  });
}

async function served(t: ExecutionContext) {
  const sessions: ServerHttp2Session[] = [];
  const sockets: Socket[] = [];
  const server = createServer();
  server.on('connection', (socket: Socket) => sockets.push(socket));
  server.on('session', (session) => sessions.push(session));
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    if (headers[':path'] === '/cut') sockets.at(-1)?.destroy();
    else (behaviours[headers[':path'] ?? ''] ?? answered)(stream);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const channel = new Channel(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, undefined);
  t.teardown(() => {
    channel.close();
    for (const session of sessions) session.destroy();
    server.close();
  });
  await channel.connected(callClock() + 10_000);
  const call = async (path: string, text = 'hello', ms = 20_000) => {
    await channel.connected(callClock() + 10_000);
    return new Promise<string>((resolve, reject) =>
      channel.unary(path, Buffer.from(text), { deadline: callClock() + ms }, String, (error, answer) =>
        answer === undefined ? reject(error) : resolve(answer),
      ),
    );
  };
  return { channel, call, sessions };
}

test('concurrent calls of one connection are answered; each error states whether the call may have been executed', async (t) => {
  const { call, sessions } = await served(t);
  const texts = Array.from({ length: 100 }, (_, n) => String(n).repeat(n * 100 + 1));
  t.deepEqual(await Promise.all(texts.map((text) => call('/echo', text))), texts);
  for (const [path, verdict] of [
    ['/refuse', 'notDone'],
    ['/fail', 'notDone'],
    ['/cancel', 'noAnswer'],
    ['/html', 'noAnswer'],
    ['/silent', 'noAnswer'],
    ['/empty', 'noAnswer'],
  ] as const) {
    const error = await t.throwsAsync(call(path), { instanceOf: CallError }, path);
    t.is(verdictOf(error), verdict, `${path}: ${error.message}`);
  }
  t.is(verdictOf(await t.throwsAsync(call('/never', 'x', 50))), 'deadline');
  t.is(await call('/echo'), 'hello');
  t.is(sessions.length, 1);
});

test('a connection that is closed or broken is replaced; its running calls end', async (t) => {
  const { call, channel, sessions } = await served(t);
  let broken = 0;
  channel.onBreak(() => {
    broken += 1;
  });
  t.is(await call('/bye'), 'hello', 'a call that the server has accepted is answered after GOAWAY');
  t.is(broken, 1);
  t.is(await call('/echo'), 'hello');
  t.is(sessions.length, 2);
  const running = call('/never');
  t.is(verdictOf(await t.throwsAsync(call('/cut'))), 'noAnswer');
  t.is(verdictOf(await t.throwsAsync(running)), 'noAnswer');
  t.is(await call('/echo'), 'hello');
  t.is(sessions.length, 3);
});

test('a call without a connection is reported as not sent, at its deadline or when it is aborted', async (t) => {
  const channel = new Channel('http://127.0.0.1:1', undefined);
  t.teardown(() => channel.close());
  t.throws(() => channel.open('/echo', {}), { instanceOf: NotSentError });
  await t.throwsAsync(channel.connected(callClock() + 100), { instanceOf: NotSentError });
  const aborted = new AbortController();
  const waiting = channel.connected(callClock() + 60_000, aborted.signal);
  aborted.abort();
  await t.throwsAsync(waiting, { instanceOf: NotSentError });
  channel.close();
  await t.throwsAsync(channel.connected(callClock() + 60_000), { instanceOf: NotSentError, message: /closed/ });
});

test('messages are read the same however their bytes are split', (t) => {
  const seed = Number(process.env['KEELSON_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  t.log(`KEELSON_SEED=${seed}`);
  const random = new Random(seed);
  const messages = Array.from({ length: 50 }, () => Buffer.alloc(random.below(200), random.below(256)));
  const bytes = Buffer.concat(messages.map(framed));
  for (let round = 0; round < 50; round++) {
    const reader = new MessageReader();
    const read: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const end = Math.min(at + 1 + random.below(round * 10 + 1), bytes.length);
      read.push(...reader.read(bytes.subarray(at, end)));
      at = end;
    }
    t.deepEqual(read, messages);
  }
  const tooLong = Buffer.from([0, 0x7f, 0xff, 0xff, 0xff]);
  t.is(verdictOf(t.throws(() => new MessageReader().read(tooLong))), 'answerTooLarge');
  t.throws(() => new MessageReader().read(Buffer.from([1, 0, 0, 0, 0])), { message: /compressed/ });
});
