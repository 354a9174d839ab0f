import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { connect as connectHttp2, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import type { ConnectionLimits } from '../../src/config/connection-limits.ts';
import { listenOn } from '../../src/server/listen.ts';
import { type Credentials, loadCredentials } from '../../src/tls/credentials.ts';

let made: Promise<Credentials> | undefined;

/** Credentials for all tests of this file. */
function credentials(): Promise<Credentials> {
  made ??= (async () => {
    const directory = await mkdtemp(join(tmpdir(), 'keelson-connections-'));
    try {
      return await loadCredentials(directory, '127.0.0.1', Date.now());
    } finally {
      await rm(directory, { recursive: true });
    }
  })();
  return made;
}

const soon: Partial<ConnectionLimits> = {
  handshakeMs: 300,
  idleMs: 300,
  headersMs: 300,
  lingerMs: 300,
  unreadAnswerMs: 300,
};
const late: Partial<ConnectionLimits> = { handshakeMs: 60_000, idleMs: 60_000, headersMs: 60_000, lingerMs: 60_000 };

/** Answers `/hang` never, `/large` with 50 MB, anything else with its path. */
const listener: RequestListener = (request, response) => {
  if (request.url === '/hang') response.writeHead(200).flushHeaders();
  else if (request.url === '/large') response.end(Buffer.alloc(50_000_000));
  else response.end(request.url);
};

interface Place {
  readonly port: number;
  readonly tls: ConnectionOptions | undefined;
}

async function server(t: ExecutionContext, limits: Partial<ConnectionLimits>, secure: boolean): Promise<Place> {
  const known = secure ? await credentials() : undefined;
  const http = { connectionsCheckingInterval: 50 };
  const tls = known && { ...known.server, authorities: [known.authority] };
  const { port, close } = await listenOn({ host: '127.0.0.1', port: 0 }, listener, tls, { http, limits });
  t.teardown(() => close(0));
  return { port, tls: known && { ca: known.authority } };
}

interface Client {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  isClosed(): boolean;
  text(): string;
}

function client(t: ExecutionContext, { port, tls }: Place, bytes: string | Buffer, protocols = ['http/1.1']): Client {
  let text = '';
  let isClosed = false;
  const socket: Socket =
    tls === undefined
      ? connect(port, '127.0.0.1')
      : connectTls({ port, host: '127.0.0.1', ALPNProtocols: protocols, ...tls }, () => {});
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  if (bytes.length > 0) socket.write(bytes);
  t.teardown(() => socket.destroy());
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      isClosed = true;
      resolve();
    });
  });
  return { socket, closed, isClosed: () => isClosed, text: () => text };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

async function until(condition: () => boolean): Promise<void> {
  for (let attempt = 0; attempt < 4000 && !condition(); attempt++)
    await new Promise((resolve) => setTimeout(resolve, 5));
  if (!condition()) throw new Error('it never happened');
}

/** Sends a request and waits for the head of its answer. */
async function ask(client: Client, path: string): Promise<string> {
  const before = client.text().length;
  client.socket.write(get(path));
  await until(() => client.text().slice(before).includes('\r\n\r\n') || client.isClosed());
  return client.text().slice(before);
}

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
/** HEADERS of ten bytes without END_HEADERS, of which one arrives. */
const halfHeaders = Buffer.from([0, 0, 10, 1, 0, 0, 0, 0, 1, 0x82]);
/** A request of `/hang`: fields of the static table and literals, with END_STREAM and END_HEADERS. */
const hangFields = Buffer.from('\x82\x87\x44\x05/hang\x41\x01x', 'latin1');
const headersOfHang = Buffer.concat([Buffer.from([0, 0, hangFields.length, 1, 5, 0, 0, 0, 1]), hangFields]);
const goaway = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

test('a connection that has not been used is idle: it is closed without an answer when idle ones are', async (t) => {
  for (const secure of [false, true]) {
    const silent = client(t, await server(t, soon, secure), '');
    await silent.closed;
    t.is(silent.text(), '');
  }
});

test('a connection that is used for the first time after the time for headers is served', async (t) => {
  for (const secure of [false, true]) {
    const place = await server(t, { ...late, headersMs: 100 }, secure);
    const opened = client(t, place, '');
    await new Promise((resolve) => setTimeout(resolve, 400));
    t.regex(await ask(opened, '/first'), /^HTTP\/1.1 200 /);
    opened.socket.write('GET / HTTP/1.1\r\nHo');
    await opened.closed;
    t.regex(
      opened.text(),
      /HTTP\/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n$/,
      'late headers are refused as before',
    );
  }
});

test('a handshake that does not end is closed', async (t) => {
  const { port } = await server(t, { ...late, handshakeMs: 300 }, true);
  for (const bytes of ['', '\x16\x03\x01']) await client(t, { port, tls: undefined }, bytes).closed;
  t.pass();
});

for (const [state, bytes, limits] of [
  ['without a preface', Buffer.alloc(0), { handshakeMs: 300 }],
  ['with half a preface', preface.subarray(0, 10), { handshakeMs: 300 }],
  ['without a request', Buffer.concat([preface, settings]), { idleMs: 300, lingerMs: 300 }],
  ['with unfinished headers', Buffer.concat([preface, settings, halfHeaders]), { idleMs: 300, lingerMs: 300 }],
  [
    'with an open stream whose client answers no PING',
    Buffer.concat([preface, settings, headersOfHang]),
    { pingMs: 300 },
  ],
  ['whose client has sent GOAWAY', Buffer.concat([preface, settings, goaway]), { lingerMs: 300 }],
] as const) {
  test(`an HTTP/2 connection ${state} is closed`, async (t) => {
    const place = await server(t, { ...late, ...limits }, true);
    const opened = client(t, place, bytes, ['h2']);
    // A client that keeps its end open learns from a write that the server has closed the other one.
    opened.socket.allowHalfOpen = true;
    opened.socket.once('end', () => {
      const timer = setInterval(() => opened.socket.write(settings), 50);
      opened.socket.once('close', () => clearInterval(timer));
    });
    await opened.closed;
    t.pass();
  });
}

/**
 * A stream whose answer has begun and does not end. On a busy machine a connection can be idle for too long before its
 * first request arrives; then another one is opened.
 */
async function unansweredStream(t: ExecutionContext, { port, tls }: Place) {
  for (;;) {
    const session = connectHttp2(`https://127.0.0.1:${port}`, tls);
    session.on('error', () => {});
    t.teardown(() => session.destroy());
    const stream = session.request({ ':path': '/hang' });
    stream.on('error', () => {});
    const answered = await new Promise((resolve) => {
      stream.once('response', () => resolve(true));
      stream.once('close', () => resolve(false));
    });
    if (answered) return { session, stream };
  }
}

test('an HTTP/2 connection with an open stream is not idle, and one that is not used is ended with GOAWAY', async (t) => {
  const { port, tls } = await server(t, { ...late, idleMs: 300 }, true);
  let gone = false;
  const { session, stream } = await unansweredStream(t, { port, tls });
  session.on('goaway', () => {
    gone = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 1500));
  t.false(gone);
  stream.destroy();
  await new Promise<void>((resolve) => session.once('close', resolve));
  t.true(gone);
});

test('a connection whose client does not read its answer is closed, over HTTP/2 the stream', async (t) => {
  for (const secure of [false, true]) {
    const unread = client(t, await server(t, { ...late, unreadAnswerMs: 300 }, secure), '');
    unread.socket.pause();
    unread.socket.write(get('/large'));
    await new Promise((resolve) => setTimeout(resolve, 2500));
    unread.socket.resume();
    await unread.closed;
    t.true(unread.text().length < 50_000_000);
  }
  const { port, tls } = await server(t, { ...late, unreadAnswerMs: 300 }, true);
  const session = connectHttp2(`https://127.0.0.1:${port}`, tls);
  session.on('error', () => {});
  t.teardown(() => session.destroy());
  const stream = session.request({ ':path': '/large' });
  stream.on('error', () => {});
  stream.once('response', () => stream.pause());
  await new Promise((resolve) => setTimeout(resolve, 2500));
  stream.resume();
  await new Promise<void>((resolve) => stream.once('close', resolve));
  t.false(session.closed);
});

test('an HTTP/2 client that resets more streams than the burst loses its connection, others keep theirs', async (t) => {
  const place = await server(t, { ...late, streamResetBurst: 20, streamResetsPerSecond: 1 }, true);
  const { session: other } = await unansweredStream(t, place);
  const session = connectHttp2(`https://127.0.0.1:${place.port}`, place.tls);
  session.on('error', () => {});
  t.teardown(() => session.destroy());
  const closed = new Promise<void>((resolve) => session.once('close', resolve));
  let goaway: number | undefined;
  session.on('goaway', (code) => {
    goaway = code;
  });
  let resets = 0;
  while (!session.closed && !session.destroyed && resets < 200) {
    const stream = session.request({ ':path': '/hang' });
    stream.on('error', () => {});
    const ended = new Promise<void>((resolve) => stream.once('close', resolve));
    await Promise.race([once(stream, 'response'), ended]);
    stream.close(constants.NGHTTP2_CANCEL);
    await ended;
    resets += 1;
  }
  await closed;
  t.is(goaway, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  t.true(resets > 20 && resets < 200, String(resets));
  t.false(other.closed);
});

for (const secure of [false, true]) {
  const way = secure ? 'over TLS' : 'in plain HTTP';

  test(`at the limit idle connections are closed for new ones, unused ones first, active ones not, ${way}`, async (t) => {
    const place = await server(t, { ...late, connections: 6, connectionsPerAddress: 6 }, secure);
    const used = client(t, place, '');
    t.regex(await ask(used, '/used'), /200/);
    const busy = client(t, place, '');
    t.regex(await ask(busy, '/hang'), /200/);
    const unused = [1, 2, 3, 4].map(() => client(t, place, ''));
    if (secure)
      await Promise.all(unused.map(({ socket }) => new Promise((resolve) => socket.once('secureConnect', resolve))));
    for (const which of [0, 1, 2, 3]) {
      const next = client(t, place, '');
      t.regex(await ask(next, '/next'), /200/);
      await unused[which]?.closed;
    }
    t.false(busy.isClosed());
    t.regex(await ask(used, '/again'), /200/, 'the one that is in use was spared');
  });

  test(`when all connections are active, health checks are answered and other requests get 429, ${way}`, async (t) => {
    const place = await server(t, { ...late, connections: 4, connectionsPerAddress: 3 }, secure);
    const busy = [1, 2, 3].map(() => client(t, place, ''));
    for (const each of busy) t.regex(await ask(each, '/hang'), /200/);
    for (const [path, code] of [
      ['/readyz', '200'],
      ['/api/v1/pods', '429'],
      ['/livez?verbose', '200'],
    ] as const) {
      const extra = client(t, place, '');
      const answer = await ask(extra, path);
      t.regex(answer, new RegExp(`^HTTP/1.1 ${code} `));
      t.is(answer.includes('Retry-After: 1'), code === '429');
      await extra.closed;
    }
    const unknownVersion = client(t, place, 'GET /api/v1/pods HTTP/2.0\r\nHost: x\r\n\r\n');
    await unknownVersion.closed;
    t.regex(unknownVersion.text(), /^HTTP\/1.1 429 /);
    t.true(busy.every((each) => !each.isClosed()));
  });
}
