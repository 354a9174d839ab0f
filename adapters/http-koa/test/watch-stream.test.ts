import { once } from 'node:events';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import { StorageError, statusErrors } from '@keelson/core';
import type { WatchEvent } from '@keelson/core/internal';
import { FakeClock } from '@keelson/core/runtime';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { configMap, event, FakeRegistry, type FakeWatch, stored } from './support/fake-registry.ts';
import { call, lines, open, raw, type ServeOptions, serve } from './support/serve.ts';

const all = '/api/v1/namespaces/default/configmaps';

function bookmark(revision: number): WatchEvent {
  return event('BOOKMARK', stored(configMap, '', revision));
}

/** A server and a client with an open watch on it. */
async function watching(t: ExecutionContext, query = '', options: ServeOptions = {}) {
  const registry = new FakeRegistry();
  const service = registry.service(configMap);
  const served = await serve(t, { registry, ...options });
  const response = await open(served.port, 'GET', `${all}?watch=1${query}`);
  const watch = service.watches[0] as FakeWatch;
  return { ...served, registry, service, response, watch };
}

test('headers are sent immediately, and events as lines, in order', async (t) => {
  const { response, watch } = await watching(t);
  t.is(response.statusCode, 200);
  t.is(response.headers['content-type'], 'application/json');
  t.is(response.headers['transfer-encoding'], 'chunked');
  t.is(response.headers['content-length'], undefined);
  const incoming = lines(response);
  watch.push(event('ADDED', stored(configMap, 'a', 1)));
  t.like((await incoming.next()).value, { type: 'ADDED', object: { kind: 'ConfigMap', apiVersion: 'v1' } });
  for (let i = 2; i <= 300; i++) watch.push(event(i % 2 ? 'MODIFIED' : 'DELETED', stored(configMap, `n${i}`, i)));
  for (let i = 2; i <= 300; i++) {
    const { value } = await incoming.next();
    t.is((value!.object['metadata'] as { resourceVersion: string }).resourceVersion, String(i));
  }
  response.destroy();
  await until(() => watch.closed, 'the watch is released');
});

for (const [form, path] of [
  ['the parameter', `${all}?watch=true&timeoutSeconds=7`],
  ['the path', '/api/v1/watch/namespaces/default/configmaps?timeoutSeconds=7'],
  ['the path of one object', '/api/v1/watch/namespaces/default/configmaps/a?timeoutSeconds=7'],
] as const) {
  test(`a watch by ${form} ends cleanly after timeoutSeconds`, async (t) => {
    const clock = new FakeClock();
    const registry = new FakeRegistry();
    const { port } = await serve(t, { registry, clock });
    const response = await open(port, 'GET', path);
    const service = registry.service(configMap);
    t.deepEqual(
      service.calls[0]?.args[1],
      path.includes('/a?') ? { namespace: 'default', name: 'a' } : { namespace: 'default' },
    );
    service.watches[0]?.push(event('ADDED', stored(configMap, 'a', 1)));
    const incoming = lines(response);
    await incoming.next();
    clock.advance(6999);
    t.false(service.watches[0]?.closed);
    clock.advance(1);
    t.true((await incoming.next()).done);
    t.true(response.complete);
    t.true(service.watches[0]?.closed);
    t.is(service.watches[0]?.bookmarksRequested, 0);
  });
}

test('a watch without timeoutSeconds lasts one to two times the minimum timeout of the server', async (t) => {
  const clock = new FakeClock();
  const { response, watch } = await watching(t, '', { clock });
  clock.advance(1_799_999);
  t.false(watch.closed);
  clock.advance(1_800_001);
  t.true(watch.closed);
  for await (const _ of response) t.fail();
  t.true(response.complete);
});

test('a timeoutSeconds beyond the range of timers does not end the watch immediately', async (t) => {
  const { response, watch } = await watching(t, '&timeoutSeconds=99999999999');
  watch.push(event('ADDED', stored(configMap, 'a', 1)));
  t.is((await lines(response).next()).value?.type, 'ADDED');
  t.false(watch.closed);
});

test('bookmarks are requested every minute and before the end, when the client allows them', async (t) => {
  const clock = new FakeClock();
  const { response, watch } = await watching(t, '&allowWatchBookmarks=true&timeoutSeconds=150', { clock });
  let revision = 10;
  watch.onBookmark = () => watch.push(bookmark(revision++));
  const incoming = lines(response);
  clock.advance(59_999);
  t.is(watch.bookmarksRequested, 0);
  clock.advance(1);
  t.is((await incoming.next()).value?.type, 'BOOKMARK');
  clock.advance(60_000);
  t.is(watch.bookmarksRequested, 2);
  await incoming.next();
  clock.advance(30_000);
  t.is(watch.bookmarksRequested, 3);
  t.is((await incoming.next()).value?.type, 'BOOKMARK');
  t.true((await incoming.next()).done);
});

test('a watch that fails sends one ERROR event with a Status and closes', async (t) => {
  const { response, watch } = await watching(t);
  watch.push(event('ADDED', stored(configMap, 'a', 1)));
  watch.fail(new StorageError('Compacted', 'gone'));
  const incoming = lines(response);
  t.is((await incoming.next()).value?.type, 'ADDED');
  t.like((await incoming.next()).value, {
    type: 'ERROR',
    object: { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Expired', code: 410 },
  });
  t.true((await incoming.next()).done);
  t.true(response.complete);
  t.true(watch.closed);
});

test('a watch from an expired revision is a 200 with an ERROR event; other errors are ordinary responses', async (t) => {
  const registry = new FakeRegistry();
  const service = registry.service(configMap);
  const { port } = await serve(t, { registry });
  service.on.watch = async () => {
    throw statusErrors.expired('too old resource version: 1 (5)');
  };
  const old = await call(port, 'GET', `${all}?watch=1&resourceVersion=1`);
  t.is(old.status, 200);
  t.like(old.json, {
    type: 'ERROR',
    object: { code: 410, reason: 'Expired', message: 'too old resource version: 1 (5)' },
  });
  service.on.watch = async () => {
    throw statusErrors.badRequest('no');
  };
  t.is((await call(port, 'GET', `${all}?watch=1`)).status, 400);
  t.is((await call(port, 'GET', `${all}?watch=1&timeoutSeconds=x`)).status, 400);
  t.is((await call(port, 'HEAD', '/api/v1/watch/configmaps')).status, 400);
});

test('a client that stops reading pauses its watch, which continues without a missing event', async (t) => {
  const { response, watch } = await watching(t);
  const big = 'y'.repeat(100_000);
  response.pause();
  for (let i = 1; i <= 1000; i++) watch.push(event('ADDED', stored(configMap, `n${i}`, i, big)));
  let seen = -1;
  await until(() => {
    const stable = watch.waiting === seen;
    seen = watch.waiting;
    return stable && seen < 1000;
  }, 'the server stops pulling');
  t.true(watch.waiting > 500, `${watch.waiting} of 1000 events are still with the watch`);
  let count = 0;
  for await (const { object } of lines(response)) {
    count += 1;
    t.is((object['metadata'] as { name: string }).name, `n${count}`);
    if (count === 1000) break;
  }
  t.is(count, 1000);
});

test('a stalled client cannot delay the end of its watch indefinitely', async (t) => {
  const clock = new FakeClock();
  const { response, watch } = await watching(t, '&timeoutSeconds=5', { clock });
  response.pause();
  const big = 'y'.repeat(1_000_000);
  for (let i = 1; i <= 40; i++) watch.push(event('ADDED', stored(configMap, `n${i}`, i, big)));
  await until(() => (watch.reads > 0 && watch.waiting === 0) || watch.reads > 1, 'the socket is full');
  clock.advance(5000);
  t.true(watch.closed);
  response.on('error', () => {});
  const closed = new Promise((resolve) => response.once('close', resolve));
  clock.advance(10_000);
  response.resume();
  await closed;
  t.false(response.complete);
});

test('many watchers share one buffer per event and representation', async (t) => {
  const registry = new FakeRegistry();
  const service = registry.service(configMap);
  const { port } = await serve(t, { registry });
  const responses = await Promise.all(Array.from({ length: 20 }, () => open(port, 'GET', `${all}?watch=1`)));
  const made: string[] = [];
  const object = stored(configMap, 'a', 1);
  const inner = event('ADDED', object);
  const shared: WatchEvent = {
    type: 'ADDED',
    object,
    encoded: (representation) =>
      inner.encoded({
        id: representation.id,
        encode: (type, o) => {
          made.push(representation.id);
          return representation.encode(type, o);
        },
      }),
  };
  for (const watch of service.watches) watch.push(shared, event('DELETED', object));
  for (const response of responses) {
    const incoming = lines(response);
    t.is((await incoming.next()).value?.type, 'ADDED');
    t.is((await incoming.next()).value?.type, 'DELETED');
  }
  t.is(made.length, 1);
});

test('HTTP/1.0 clients get lines without chunks, and pipelined requests are answered in order', async (t) => {
  const registry = new FakeRegistry();
  const service = registry.service(configMap);
  service.objects.set('a', stored(configMap, 'a', 3));
  const { port } = await serve(t, { registry });
  const feed = setInterval(() => {
    for (const watch of service.watches.splice(0)) {
      watch.push(event('ADDED', stored(configMap, 'a', 1)), event('MODIFIED', stored(configMap, 'a', 2)));
    }
  }, 5);
  t.teardown(() => clearInterval(feed));
  const old = await raw(port, `GET ${all}?watch=1 HTTP/1.0\r\n\r\n`, (text) => text.includes('MODIFIED'));
  const [head = '', body = ''] = old.split('\r\n\r\n');
  t.notRegex(head, /transfer-encoding/i);
  t.deepEqual(
    body
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line).type),
    ['ADDED', 'MODIFIED'],
  );

  const both = await raw(
    port,
    `GET ${all}/a HTTP/1.1\r\nHost: localhost\r\n\r\nGET ${all}?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    (text) => text.includes('MODIFIED'),
  );
  t.is(both.split('HTTP/1.1 200 OK').length, 3);
  t.true(both.indexOf('"resourceVersion":"3"') < both.indexOf('ADDED'));
  t.regex(both, /\r\n[0-9a-f]+\r\n\{"type":"ADDED"/);
});

test('a watch over HTTP/2 is served through the compatibility layer', async (t) => {
  const registry = new FakeRegistry();
  const service = registry.service(configMap);
  service.objects.set('a', stored(configMap, 'a', 3));
  const { api } = await serve(t, { registry });
  const server = createHttp2Server(api.listener as never);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  t.teardown(() => {
    session.destroy();
    server.close();
  });
  const text = async (path: string, until: string) => {
    const stream = session.request({ ':path': path });
    const [headers] = (await once(stream, 'response')) as [Record<string, string>];
    let all = '';
    for await (const chunk of stream) {
      all += chunk;
      if (all.includes(until)) break;
    }
    return { headers, all };
  };
  const one = await text(`${all}/a`, '}}');
  t.is(one.headers[':status'] as unknown as number, 200);
  t.is(one.headers['content-type'], 'application/json');
  const pending = text(`${all}?watch=1`, 'MODIFIED');
  await until(() => service.watches.length === 1, 'the watch is open');
  service.watches[0]?.push(event('ADDED', stored(configMap, 'a', 1)), event('MODIFIED', stored(configMap, 'a', 2)));
  const watched = await pending;
  t.deepEqual(
    watched.all
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line).type),
    ['ADDED', 'MODIFIED'],
  );
  await until(() => service.watches[0]?.closed === true, 'the watch is released');
});

test('a client that disconnects before its watch is open leaves no watch behind', async (t) => {
  const registry = new FakeRegistry();
  const service = registry.service(configMap);
  const { port } = await serve(t, { registry });
  let give: (() => void) | undefined;
  const create = service.watch.bind(service);
  let asked = false;
  service.on.watch = () =>
    new Promise((resolve) => {
      asked = true;
      give = () => {
        service.on = {};
        resolve(create({} as never, {}, { resourceVersion: '' }));
      };
    });
  const socket = connect(port, '127.0.0.1');
  socket.write(`GET ${all}?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await until(() => asked, 'the watch is requested');
  socket.destroy();
  await new Promise((resolve) => setTimeout(resolve, 30));
  give?.();
  await until(() => service.watches[0]?.closed === true, 'the watch is released');
  t.pass();
});
