import type { ServerResponse } from 'node:http';
import { isStatusError, type KubeObject } from '@keelson/core';
import { FakeClock } from '@keelson/core/runtime';
import test from 'ava';
import fc from 'fast-check';
import { isConnectionError } from '../../src/http/connection-error.ts';
import { FrameSplitter, LineSplitter } from '../../src/http/http-watch.ts';
import { failureOf, fakeServer, sendJson, statusBody } from './fake-server.ts';

const event = (type: string, name: string, extra: object = {}) =>
  `${JSON.stringify({ type, object: { kind: 'Thing', metadata: { name, resourceVersion: '5' }, ...extra } })}\n`;

function streamHead(response: ServerResponse): void {
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.flushHeaders();
}

async function collect(events: AsyncIterable<{ type: string; object: KubeObject }>): Promise<string[]> {
  const seen: string[] = [];
  for await (const { type, object } of events) seen.push(`${type} ${object.metadata?.name}`);
  return seen;
}

test('lines are the same wherever the bytes are split', (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\n', ' '))),
      fc.array(fc.nat({ max: 9 })),
      (lines, cuts) => {
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
        const splitter = new LineSplitter();
        const seen: string[] = [];
        let at = 0;
        for (let turn = 0; at < bytes.length; turn += 1) {
          const size = cuts.length === 0 ? bytes.length : 1 + (cuts[turn % cuts.length] ?? 0);
          for (const line of splitter.push(bytes.subarray(at, at + size))) seen.push(line.toString());
          at += size;
        }
        return (
          splitter.pendingBytes === 0 && JSON.stringify(seen) === JSON.stringify(lines.filter((line) => line !== ''))
        );
      },
    ),
  );
  t.pass();
});

test('a line that exceeds the limit is rejected immediately, complete or not', (t) => {
  t.throws(() => new LineSplitter(10).push(Buffer.from('12345678901')), { code: 'BadAnswer' });
  t.throws(() => new LineSplitter(10).push(Buffer.from('12345678901\n')), { code: 'BadAnswer' });
  const splitter = new LineSplitter(10);
  t.is(splitter.push(Buffer.from('1234567890\n123')).length, 1);
  t.throws(() => splitter.push(Buffer.from('45678901')), { code: 'BadAnswer' });
});

test('events are returned one by one; the request contains the options of the watch', async (t) => {
  const { things, seen } = await fakeServer(t, (_request, response) => {
    streamHead(response);
    const bytes = Buffer.from(
      event('ADDED', 'ä') + event('MODIFIED', '漢') + event('BOOKMARK', '') + event('DELETED', '😀'),
    );
    for (const byte of bytes) response.write(Buffer.from([byte]));
    response.end();
  });
  const options = {
    resourceVersion: '3',
    allowWatchBookmarks: true,
    sendInitialEvents: true,
    labelSelector: 'a=b',
    timeoutSeconds: 9,
  };
  t.deepEqual(await collect(things.watch({ ...options, resourceVersionMatch: 'NotOlderThan' })), [
    'ADDED ä',
    'MODIFIED 漢',
    'BOOKMARK ',
    'DELETED 😀',
  ]);
  t.is(
    seen[0]?.url,
    '/apis/g.example.com/v1/namespaces/n/things?labelSelector=a%3Db&resourceVersion=3&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&sendInitialEvents=true&timeoutSeconds=9&watch=true',
  );
  t.is(seen[0]?.headers['accept-encoding'], 'identity');
});

test('a retired client ends its watches, finishes running requests, rejects new ones and closes its connections', async (t) => {
  const closed: Promise<void>[] = [];
  let finish = () => {};
  const { client, things, arrived } = await fakeServer(t, ({ url }, response, raw) => {
    closed.push(new Promise((resolve) => raw.socket.once('close', () => resolve())));
    if (url.includes('watch=')) {
      streamHead(response);
      response.write(event('ADDED', 'a'));
    } else finish = () => sendJson(response, { kind: 'Thing', metadata: { name: 'b' } });
  });
  const watch = things.watch()[Symbol.asyncIterator]();
  await watch.next();
  const reading = things.get('b');
  await arrived(2);
  client.retire();
  const next = async () => watch.next();
  t.true(isConnectionError(await failureOf(next()), 'Interrupted'));
  t.true(isConnectionError(await failureOf(things.get('c')), 'Closed'));
  finish();
  t.is((await reading).metadata?.name, 'b');
  await Promise.all(closed);
});

test('an ERROR event is thrown as its Status after the preceding events, and the connection is closed', async (t) => {
  let closed: Promise<void> | undefined;
  const { things } = await fakeServer(t, (_request, response, raw) => {
    closed = new Promise((resolve) => raw.socket.once('close', () => resolve()));
    streamHead(response);
    response.write(event('ADDED', 'a'));
    response.write(`${JSON.stringify({ type: 'ERROR', object: statusBody(410, 'Expired') })}\n`);
  });
  const seen: string[] = [];
  const error = await failureOf(
    (async () => {
      for await (const { object } of things.watch()) seen.push(object.metadata?.name ?? '');
    })(),
  );
  t.true(isStatusError(error, 'Expired'));
  t.is(error.code, 410);
  t.deepEqual(seen, ['a']);
  await closed;
});

test('streams that break, end within an event or contain no events fail with the matching error', async (t) => {
  const ends: Record<string, (response: ServerResponse) => void> = {
    broken: (response) => response.socket?.destroy(),
    within: (response) => response.end('{"type":'),
    text: (response) => response.end('hello\n'),
    type: (response) => response.end(event('CHANGED', 'a')),
    object: (response) => response.end('{"type":"ADDED"}\n'),
    nothing: (response) => response.end('null\n'),
  };
  const { things } = await fakeServer(t, ({ url }, response) => {
    streamHead(response);
    response.write(event('ADDED', 'a'), () =>
      ends[new URL(url, 'http://x').searchParams.get('labelSelector') ?? '']?.(response),
    );
  });
  const codes: Record<string, unknown> = {};
  for (const labelSelector of Object.keys(ends))
    codes[labelSelector] = (await failureOf(collect(things.watch({ labelSelector })))).code;
  t.deepEqual(codes, {
    broken: 'Interrupted',
    within: 'Interrupted',
    text: 'BadAnswer',
    type: 'BadAnswer',
    object: 'BadAnswer',
    nothing: 'BadAnswer',
  });
});

test('a watch is read as fast as its events are consumed, and ending the iteration closes the connection', async (t) => {
  const line = event('ADDED', 'a', { data: 'x'.repeat(100_000) });
  let written = 0;
  let stalled: () => void = () => {};
  const full = new Promise<void>((resolve) => {
    stalled = resolve;
  });
  let closed: () => void = () => {};
  const gone = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const { things } = await fakeServer(t, (_request, response) => {
    streamHead(response);
    response.on('close', () => closed());
    let quiet: NodeJS.Timeout | undefined;
    const write = () => {
      clearTimeout(quiet);
      while (written < 2_000) {
        written += 1;
        if (!response.write(line)) {
          quiet = setTimeout(stalled, 300);
          response.once('drain', write);
          return;
        }
      }
      stalled();
    };
    write();
  });
  const watch = things.watch()[Symbol.asyncIterator]();
  t.false((await watch.next()).done);
  await full;
  t.true(written < 1_000, `the server could write ${written} events of 100 kB`);
  for (let at = 0; at < 50; at += 1) t.false((await watch.next()).done);
  await watch.return?.();
  await gone;
});

test('a watch that the server does not end at its timeout is closed ten seconds later', async (t) => {
  const clock = new FakeClock();
  const { things, arrived } = await fakeServer(t, (_request, response) => streamHead(response), { clock });
  const watching = collect(things.watch({ timeoutSeconds: 30 }));
  await arrived(1);
  clock.advance(39_999);
  clock.advance(1);
  t.deepEqual(await watching, []);
});

test('closing the client ends its watches with the error Closed', async (t) => {
  const { things, client, arrived } = await fakeServer(t, (_request, response) => streamHead(response));
  const watching = failureOf(collect(things.watch()));
  await arrived(1);
  client.close();
  t.true(isConnectionError(await watching, 'Closed'));
});

test('a watch that is answered with 429 is retried, one that is rejected is not', async (t) => {
  let code = 429;
  const { things, seen } = await fakeServer(t, (_request, response) => {
    if (seen.length === 3) {
      streamHead(response);
      response.end(event('ADDED', 'a'));
    } else {
      response.writeHead(code, { 'Retry-After': '0' });
      response.end('busy');
    }
  });
  t.deepEqual(await collect(things.watch()), ['ADDED a']);
  code = 403;
  t.like(await failureOf(collect(things.watch())), { code: 403, reason: 'Forbidden' });
  t.is(seen.length, 4);
});

test('length-prefixed frames are the same wherever the bytes are split', (t) => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), fc.array(fc.nat({ max: 9 })), (frames, cuts) => {
      const bytes = Buffer.concat(
        frames.map((frame) => {
          const length = Buffer.alloc(4);
          length.writeUInt32BE(frame.length);
          return Buffer.concat([length, frame]);
        }),
      );
      const splitter = new FrameSplitter();
      const seen: string[] = [];
      let at = 0;
      for (let turn = 0; at < bytes.length; turn += 1) {
        const size = cuts.length === 0 ? bytes.length : 1 + (cuts[turn % cuts.length] ?? 0);
        for (const frame of splitter.push(bytes.subarray(at, at + size))) seen.push(frame.toString('hex'));
        at += size;
      }
      const expected = frames.filter((frame) => frame.length > 0).map((frame) => Buffer.from(frame).toString('hex'));
      return splitter.pendingBytes === 0 && JSON.stringify(seen) === JSON.stringify(expected);
    }),
  );
  const tooLong = new FrameSplitter(10);
  t.throws(() => tooLong.push(Buffer.from([0, 0, 0, 11])), { code: 'BadAnswer' });
  t.throws(() => new FrameSplitter().push(Buffer.from([0xff, 0xff, 0xff, 0xff])), { code: 'BadAnswer' });
});
