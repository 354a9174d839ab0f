import { once } from 'node:events';
import {
  type ClientHttp2Session,
  connect,
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import { type AddressInfo, connect as connectSocket } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { http2ServerOptions } from '../src/index.ts';
import { serveReal } from './support/real-plane.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const json = { 'content-type': 'application/json' };
const configMap = (name: string, value = 'x') => Buffer.from(JSON.stringify({ metadata: { name }, data: { value } }));

async function served(t: ExecutionContext, options: Parameters<typeof serveReal>[1] = {}) {
  const { api } = await serveReal(t, options);
  const server = createServer(http2ServerOptions, (request, response) =>
    api.listener(request as never, response as never),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  t.teardown(() => {
    session.destroy();
    server.close();
  });
  return { api, session, server };
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Sends a request whose body consists of the given DATA frames. */
async function call(
  session: ClientHttp2Session,
  method: string,
  path: string,
  { headers = {}, frames }: { headers?: Readonly<Record<string, string>>; frames?: readonly Buffer[] } = {},
): Promise<Answer> {
  const stream = session.request({ ':method': method, ':path': path, ...headers }, { endStream: frames === undefined });
  const received = once(stream, 'response') as Promise<[IncomingHttpHeaders]>;
  for (const frame of frames ?? []) {
    stream.write(frame);
    // A round trip, so that each frame is read by the server in a turn of its own.
    await new Promise<void>((resolve) => session.ping(() => resolve()));
  }
  if (frames !== undefined) stream.end();
  const [answered] = await received;
  const body = Buffer.concat((await stream.toArray()) as Buffer[]);
  return { status: Number(answered[':status']), headers: answered, body };
}

/** All streams of the client are closed, which needs the server to have ended its side of each. */
async function noneOpen(t: ExecutionContext, session: ClientHttp2Session) {
  session.close();
  await once(session, 'close');
  t.pass();
}

test('objects are written and read, with bodies of one frame and of many, with and without a length', async (t) => {
  const { session } = await served(t);
  const whole = configMap('whole');
  const sized = { ...json, 'content-length': String(whole.length) };
  t.is((await call(session, 'POST', maps, { headers: sized, frames: [whole] })).status, 201);
  const zeros = configMap('zeros');
  const padded = { ...json, 'content-length': String(zeros.length).padStart(8, '0') };
  t.is((await call(session, 'POST', maps, { headers: padded, frames: [zeros] })).status, 201);
  const parts = configMap('parts', 'y'.repeat(100_000));
  const cut = [0, 1, 2, 3].map((n) => parts.subarray(n * 30_000, (n + 1) * 30_000));
  t.is((await call(session, 'POST', maps, { headers: json, frames: cut })).status, 201);
  const read = await call(session, 'GET', `${maps}/parts`);
  t.is(read.status, 200);
  t.is(JSON.parse(read.body.toString()).data.value.length, 100_000);
  t.is(read.headers['content-length'], String(read.body.length));
  t.regex(read.headers['audit-id'] as string, /./);
  const head = await call(session, 'HEAD', `${maps}/parts`);
  t.deepEqual([head.status, head.headers['content-length'], head.body.length], [200, String(read.body.length), 0]);
  t.is((await call(session, 'DELETE', `${maps}/whole`)).status, 200);
  t.is((await call(session, 'GET', `${maps}/whole`)).status, 404);
  await noneOpen(t, session);
});

/** A frame of HTTP/2 (RFC 9113, 4.1). */
function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/**
 * The headers of a POST, and its body in one frame that ends the stream, as Go's client sends it; Node's sends the end
 * on its own. An empty body has a frame but no length, as that of `kubectl create --raw -f FILE` with an empty file.
 */
function postFrames(body: Buffer): { readonly headers: Buffer; readonly data: Buffer } {
  const fields = { ':method': 'POST', ':scheme': 'http', ':authority': '127.0.0.1', ':path': maps, ...json };
  const length = body.length === 0 ? {} : { 'content-length': String(body.length) };
  const literals = Object.entries({ ...fields, ...length }).flatMap(([name, value]) => [
    Buffer.of(0, name.length),
    Buffer.from(name),
    Buffer.of(value.length),
    Buffer.from(value),
  ]);
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  const settings = frame(4, 0, 0, Buffer.alloc(0));
  return {
    headers: Buffer.concat([preface, settings, frame(1, 4, 1, Buffer.concat(literals))]),
    data: frame(0, 1, 1, body),
  };
}

for (const way of ['with its headers', 'while the server waits for it', 'in two parts while the server waits for it'])
  test(`the stream of a request whose body arrives ${way} is destroyed after its response is written`, async (t) => {
    const { server } = await served(t);
    const socket = connectSocket((server.address() as AddressInfo).port, '127.0.0.1');
    t.teardown(() => socket.destroy());
    const opened = once(server, 'stream') as Promise<[ServerHttp2Stream]>;
    const { headers, data } = postFrames(configMap('framed'));
    socket.resume();
    if (way === 'with its headers') socket.write(Buffer.concat([headers, data]));
    else socket.write(headers);
    const [stream] = await opened;
    if (way !== 'with its headers') {
      await until(() => stream.listenerCount('readable') === 1);
      const half = data.subarray(0, way.startsWith('in two parts') ? 20 : 0);
      socket.write(half);
      await until(() => stream.readableLength === Math.max(0, half.length - 9));
      socket.write(data.subarray(half.length));
    }
    const events: string[] = [];
    for (const name of ['finish', 'close']) stream.once(name, () => events.push(name));
    await once(stream, 'close');
    t.is(stream.sentHeaders?.[':status'], 201);
    t.deepEqual(events, ['finish', 'close']);
  });

test('an empty body that has ended with the headers is answered', async (t) => {
  const { server } = await served(t);
  const socket = connectSocket((server.address() as AddressInfo).port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  const opened = once(server, 'stream') as Promise<[ServerHttp2Stream]>;
  const { headers, data } = postFrames(Buffer.alloc(0));
  socket.resume();
  socket.write(Buffer.concat([headers, data]));
  const [stream] = await opened;
  await once(stream, 'close');
  t.is(stream.sentHeaders?.[':status'], 400);
});

test('a body beyond the limit is 413, one far beyond it is not read, and other streams continue', async (t) => {
  const { session } = await served(t, { limits: { bodyBytes: 10_000 } });
  const body = configMap('large', 'z'.repeat(20_000));
  t.is((await call(session, 'POST', maps, { headers: json, frames: [body] })).status, 413);
  const announced = { ...json, 'content-length': '1000000' };
  const endless = session.request({ ':method': 'POST', ':path': maps, ...announced }, { endStream: false });
  const [headers] = (await once(endless, 'response')) as [IncomingHttpHeaders];
  t.is(Number(headers[':status']), 413);
  endless.resume();
  await once(endless, 'close');
  t.is((await call(session, 'GET', maps)).status, 200);
  await noneOpen(t, session);
});

test('a long list is identical plain and compressed, and respects the window of the client', async (t) => {
  const { session } = await served(t);
  const value = 'v'.repeat(50_000);
  for (let n = 0; n < 30; n++)
    await call(session, 'POST', maps, { headers: json, frames: [configMap(`many-${n}`, value)] });
  const plain = await call(session, 'GET', maps);
  t.is(JSON.parse(plain.body.toString()).items.length, 30);
  const small = await call(session, 'GET', maps, { headers: { 'accept-encoding': 'gzip' } });
  t.is(small.headers['content-encoding'], 'gzip');
  t.true(gunzipSync(small.body).equals(plain.body));
  const abandoned = session.request({ ':path': maps });
  await once(abandoned, 'response');
  abandoned.close(constants.NGHTTP2_CANCEL);
  t.is((await call(session, 'GET', `${maps}/many-0`)).status, 200);
  await noneOpen(t, session);
});

test('a watch sends its events as they happen, and ends when the client resets it or the server closes', async (t) => {
  const { api, session } = await served(t);
  const watches = [0, 1].map(() => session.request({ ':path': `${maps}?watch=1` }));
  const texts = ['', ''];
  for (const [n, watch] of watches.entries()) {
    await once(watch, 'response');
    watch.setEncoding('utf8').on('data', (chunk: string) => {
      texts[n] += chunk;
    });
  }
  await call(session, 'POST', maps, { headers: json, frames: [configMap('seen')] });
  await until(() => texts.every((text) => text.includes('"ADDED"') && text.endsWith('\n')), 'both receive the event');
  watches[0]?.close();
  await call(session, 'DELETE', `${maps}/seen`);
  await until(() => texts[1]?.includes('"DELETED"') === true, 'the other watch receives the next event');
  t.false(texts[0]?.includes('"DELETED"'));
  const ended = once(watches[1] as NonNullable<(typeof watches)[1]>, 'end');
  await api.drain();
  await ended;
  t.is((await call(session, 'GET', maps)).status, 503);
  await noneOpen(t, session);
});

test('requests outside of the resource API are served, also with Expect: 100-continue', async (t) => {
  const { session } = await served(t);
  t.is((await call(session, 'GET', '/readyz')).body.toString(), 'ok');
  t.is(JSON.parse((await call(session, 'GET', '/apis')).body.toString()).kind, 'APIGroupList');
  t.is((await call(session, 'GET', '/nothing')).status, 404);
  const headers = { ...json, expect: '100-continue' };
  t.is((await call(session, 'POST', maps, { headers, frames: [configMap('expected')] })).status, 201);
  await noneOpen(t, session);
});
