import { once } from 'node:events';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import type { Readable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import type { StoredList, StoredObject } from '@keelson/core/internal';
import { until } from '@keelson/test-support';
import test from 'ava';
import { configMap, FakeRegistry, listOf, stored } from './support/fake-registry.ts';
import { call, open, serve } from './support/serve.ts';

type PartForm = Parameters<NonNullable<StoredList['parts']>>[0];

const all = '/api/v1/namespaces/default/configmaps';
const empty = '{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"100"},"items":[]}\n';

function registryWith(objects: readonly StoredObject[], revision = 100, token = ''): FakeRegistry {
  const registry = new FakeRegistry();
  registry.service(configMap).on.list = async () => listOf(configMap, objects, revision, token);
  return registry;
}

function many(count: number, size = 1000): StoredObject[] {
  return Array.from({ length: count }, (_, i) => stored(configMap, `n${i}`, i + 1, 'v'.repeat(size)));
}

/** A list of 40 objects of 1 MB, and how many of them were read. */
function countedList(): { readonly registry: FakeRegistry; readonly taken: () => number } {
  const objects = many(40, 1_000_000);
  let taken = 0;
  const registry = new FakeRegistry();
  registry.service(configMap).on.list = async () => {
    const answer = listOf(configMap, objects);
    return {
      ...answer,
      list: {
        ...answer.list,
        *objects() {
          for (const object of objects) {
            taken += 1;
            yield object;
          }
        },
      },
    };
  };
  return { registry, taken: () => taken };
}

test('an empty list has items, and every list has its revision and continue token', async (t) => {
  const served = await serve(t, { registry: registryWith([]) });
  t.is((await call(served.port, 'GET', all)).text, empty);
  const page = await serve(t, { registry: registryWith(many(2), 7, 'tok') });
  const reply = await call(page.port, 'GET', all);
  t.is(reply.json.metadata.continue, 'tok');
  t.is(reply.json.metadata.resourceVersion, '7');
  t.deepEqual(reply.json.items[1], JSON.parse(stored(configMap, 'n1', 2, 'v'.repeat(1000)).json.toString()));
  t.is(reply.headers['content-length'], String(reply.body.length));
});

for (const [what, accept, query] of [
  ['as stored', 'application/json', ''],
  ['pretty', 'application/json', '?pretty=true'],
  ['as a Table', 'application/json;as=Table;g=meta.k8s.io;v=v1', ''],
  ['as metadata', 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1', ''],
] as const) {
  test(`a list of several megabytes is complete ${what}, and compressed on request`, async (t) => {
    const { port } = await serve(t, { registry: registryWith(many(3000)) });
    const plain = await call(port, 'GET', `${all}${query}`, { headers: { accept } });
    t.is(plain.status, 200);
    t.is((plain.json.items ?? plain.json.rows).length, 3000);
    t.is(plain.headers['content-encoding'], undefined);
    t.is(plain.headers.vary, 'Accept-Encoding');
    const zipped = await call(port, 'GET', `${all}${query}`, { headers: { accept, 'accept-encoding': 'gzip' } });
    t.is(zipped.headers['content-encoding'], 'gzip');
    t.true(zipped.body.length < plain.body.length / 5);
    t.true(gunzipSync(zipped.body).equals(plain.body));
    const head = await call(port, 'HEAD', `${all}${query}`, { headers: { accept } });
    t.is(head.status, 200);
    t.is(head.body.length, 0);
  });
}

test('a YAML list is one document', async (t) => {
  const { port } = await serve(t, { registry: registryWith(many(2, 3)) });
  const reply = await call(port, 'GET', all, { headers: { accept: 'application/yaml' } });
  t.is(reply.headers['content-type'], 'application/yaml');
  t.regex(reply.text, /^kind: ConfigMapList\n|^apiVersion: v1\n/);
  t.regex(reply.text, /- (kind|apiVersion): /);
});

for (const version of ['HTTP/1.1', "HTTP/2 through Node's compatibility layer"]) {
  test(`a slow client receives all of a large list, and the server buffers little more than the socket: ${version}`, async (t) => {
    const { registry, taken } = countedList();
    const { api, port } = await serve(t, { registry });
    let response: Readable;
    if (version === 'HTTP/1.1') response = await open(port, 'GET', `${all}?pretty=1`);
    else {
      const server = createHttp2Server(api.listener as never).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      t.teardown(() => {
        session.destroy();
        server.close();
      });
      response = session.request({ ':path': `${all}?pretty=1` });
      await once(response, 'response');
    }
    response.pause();
    let before = -1;
    await until(() => {
      const stable = taken() > 0 && taken() === before;
      before = taken();
      return stable;
    }, 'the server waits');
    t.true(taken() < 40, `${taken()} of 40 objects were made`);
    let size = 0;
    for await (const chunk of response) size += (chunk as Buffer).length;
    t.true(size > 40_000_000);
    t.is(taken(), 40);
  });
}

test('an object that cannot be encoded fails a compressed list before it begins', async (t) => {
  const answer = listOf(configMap, many(600));
  const registry = registryWith([]);
  registry.service(configMap).on.list = async () => ({
    ...answer,
    list: {
      ...answer.list,
      *parts() {
        yield {
          content: {},
          pieces: () => {
            throw new Error('damaged');
          },
        };
      },
    },
  });
  const { port } = await serve(t, { registry });
  for (const accept of ['application/json', 'application/vnd.kubernetes.protobuf']) {
    const reply = await call(port, 'GET', all, { headers: { accept, 'accept-encoding': 'gzip' } });
    t.deepEqual([reply.status, reply.headers['content-encoding']], [500, undefined], accept);
  }
});

test('a part that several compressed lists contain is created once in each form', async (t) => {
  const objects = many(600);
  const contents = new Map<string, object>();
  const created: string[] = [];
  const registry = registryWith(objects);
  const answer = listOf(configMap, objects);
  registry.service(configMap).on.list = async () => ({
    ...answer,
    list: {
      ...answer.list,
      *parts({ id, pieces }: PartForm) {
        const content = contents.get(id) ?? {};
        contents.set(id, content);
        yield {
          content,
          *pieces() {
            created.push(id);
            yield* pieces(objects.slice(0, 500), true);
          },
        };
        yield* pieces(objects.slice(500), false);
      },
    },
  });
  const { port } = await serve(t, { registry });
  const forms = ['application/json', 'application/vnd.kubernetes.protobuf'];
  for (const accept of [...forms, ...forms]) {
    const zipped = await call(port, 'GET', all, { headers: { accept, 'accept-encoding': 'gzip' } });
    t.is(zipped.headers['content-encoding'], 'gzip');
    t.true(gunzipSync(zipped.body).equals((await call(port, 'GET', all, { headers: { accept } })).body), accept);
  }
  t.is(contents.size, 2);
  t.deepEqual(created, [...contents.keys()]);
});

for (const encoding of ['identity', 'gzip']) {
  test(`buffers of sent pieces are reused for other lists, except those that a slow client waits for (${encoding})`, async (t) => {
    const pieces = new Set<ArrayBufferLike>();
    let taken = 0;
    const registry = new FakeRegistry();
    registry.service(configMap).on.list = async (
      _context: unknown,
      _target: unknown,
      { limit }: { limit?: number },
    ) => {
      const letter = limit === 1 ? 'a' : 'b';
      const answer = listOf(configMap, []);
      const list: StoredList = {
        ...answer.list,
        ready: false,
        *chunks(_representation, _separator, source) {
          for (let i = 0; i < 500; i += 1) {
            const piece = source?.take().fill(letter) ?? Buffer.alloc(0);
            pieces.add(piece.buffer);
            taken += 1;
            yield piece;
          }
        },
      };
      return { ...answer, list };
    };
    const { port } = await serve(t, { registry });
    const letters = async (response: AsyncIterable<unknown>) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      const bytes = encoding === 'gzip' ? gunzipSync(Buffer.concat(chunks)) : Buffer.concat(chunks);
      return [bytes.length, bytes.includes('aaaa'), bytes.includes('bbbb')];
    };
    const headers = { 'accept-encoding': encoding };
    const slow = await open(port, 'GET', `${all}?limit=1`, { headers });
    slow.pause();
    const whole = 500 * 65_536 + empty.length;
    t.deepEqual(await letters(await open(port, 'GET', `${all}?limit=2`, { headers })), [whole, false, true]);
    t.deepEqual(await letters(slow), [whole, true, false]);
    t.is(taken, 1000);
    t.true(pieces.size < 300, `${pieces.size} buffers for 1000 pieces`);
  });
}

test('a list is not generated further when its client disconnects', async (t) => {
  const { registry, taken } = countedList();
  const { port, api } = await serve(t, { registry });
  const socket = connect(port, '127.0.0.1');
  socket.write(`GET ${all}?pretty=1 HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await once(socket, 'data');
  socket.destroy();
  await api.drain();
  t.true(taken() > 0 && taken() < 40, `${taken()} of 40 objects were made`);
});
