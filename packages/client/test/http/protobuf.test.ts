import { defineKind, type KubeObject, optional, type Status, s } from '@keelson/core';
import {
  decodeEnvelope,
  encodeProtobufObject,
  encodeProtobufStatus,
  listSchemaOf,
  parseProtobufBody,
} from '@keelson/core/internal';
import test from 'ava';
import { createHttpClient } from '../../src/http/http-resource-client.ts';
import { failureOf, fakeServer, sendJson, statusBody } from './fake-server.ts';

const Thing = defineKind({
  group: 'g.example.com',
  version: 'v1',
  kind: 'Thing',
  schema: s.message('example.Thing', 'A thing.', {
    text: optional(2, s.string(), 'Text.'),
    count: optional(3, s.int32(), 'Count.'),
  }),
});
const Plain = defineKind({
  group: 'g.example.com',
  version: 'v1',
  kind: 'Plain',
  schema: s.message('example.Plain', 'No numbers.', { text: optional(undefined, s.string(), 'Text.') }),
});
type ThingObject = KubeObject & { text?: string; count?: number };

const mediaType = 'application/vnd.kubernetes.protobuf';
const thing: ThingObject = {
  kind: 'Thing',
  apiVersion: 'g.example.com/v1',
  metadata: { name: 'a', namespace: 'n' },
  text: 'ü',
  count: 3,
};
const encoded = (object: object) => encodeProtobufObject(Thing.schema, 'g.example.com/v1', 'Thing', object);

function frame(type: string, object: Buffer): Buffer {
  const wrap = (tag: number, bytes: Buffer) => {
    const length: number[] = [];
    for (let left = bytes.length; ; left >>>= 7) {
      length.push(left > 127 ? (left & 127) | 128 : left);
      if (left <= 127) return Buffer.concat([Buffer.from([tag, ...length]), bytes]);
    }
  };
  const event = Buffer.concat([wrap(0x0a, Buffer.from(type)), wrap(0x12, wrap(0x0a, object))]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
}

test('objects of declared kinds are sent and received in protobuf; items of lists have their kind', async (t) => {
  const bodies: Buffer[] = [];
  const list = { metadata: { resourceVersion: '9' }, items: [thing, { metadata: { name: 'b' } }] };
  const { url, seen } = await fakeServer(t, ({ method, url: path, body }, response) => {
    bodies.push(Buffer.from(body, 'latin1'));
    const listed = method === 'GET' && path.endsWith('/things');
    const answer = listed
      ? encodeProtobufObject(listSchemaOf(Thing.schema), 'g.example.com/v1', 'ThingList', list)
      : encoded(thing);
    response.writeHead(200, { 'Content-Type': mediaType });
    response.end(answer);
  });
  const client = createHttpClient({ server: url, encoding: 'protobuf' });
  t.teardown(() => client.close());
  const things = client.resource(Thing).namespace('n');
  t.deepEqual(await things.create({ metadata: { name: 'a' }, text: 'x' } as never), thing as never);
  t.deepEqual(await things.get('a'), thing as never);
  const { items, ...rest } = await things.list();
  t.deepEqual(rest, { kind: 'ThingList', apiVersion: 'g.example.com/v1', metadata: { resourceVersion: '9' } });
  t.deepEqual(
    items.map(({ kind, apiVersion, metadata }) => [kind, apiVersion, metadata?.name]),
    [
      ['Thing', 'g.example.com/v1', 'a'],
      ['Thing', 'g.example.com/v1', 'b'],
    ],
  );
  await things.patch('a', 'merge', { text: null });
  t.deepEqual(
    seen.map(({ headers }) => [headers.accept, headers['content-type']]),
    [
      [`${mediaType},application/json`, mediaType],
      [`${mediaType},application/json`, undefined],
      [`${mediaType},application/json`, undefined],
      [`${mediaType},application/json`, 'application/merge-patch+json'],
    ],
  );
  const sent = parseProtobufBody(bodies[0] ?? Buffer.alloc(0), { kind: 'Thing', schema: Thing.schema });
  t.deepEqual(sent, { kind: 'Thing', apiVersion: 'g.example.com/v1', metadata: { name: 'a' }, text: 'x' });
});

test('objects that do not match the kind, kinds without field numbers and resources by name are sent as JSON', async (t) => {
  const { url, seen } = await fakeServer(t, (_request, response) => sendJson(response, thing));
  const client = createHttpClient({ server: url, encoding: 'protobuf' });
  t.teardown(() => client.close());
  await client.resource(Thing).create({ metadata: { name: 'a' }, count: 'many' } as never);
  await client.resource(Plain).create({ metadata: { name: 'a' }, text: 'x' } as never);
  await client
    .dynamic({ group: 'g.example.com', version: 'v1', resource: 'things' })
    .create({ metadata: { name: 'a' } });
  t.deepEqual(
    seen.map(({ headers }) => headers['content-type']),
    ['application/json', 'application/json', 'application/json'],
  );
  t.is((JSON.parse(seen[0]?.body ?? '') as { count: string }).count, 'many');
});

test('a Status in protobuf is the same error or result as one in JSON', async (t) => {
  const refusal = { ...statusBody(409, 'Conflict'), details: { name: 'a', kind: 'things' } } as Status;
  let code = 409;
  const { url } = await fakeServer(t, (_request, response) => {
    response.writeHead(code, { 'Content-Type': mediaType });
    const success: Status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: { uid: 'u' },
    };
    response.end(encodeProtobufStatus(code === 409 ? refusal : success));
  });
  const client = createHttpClient({ server: url, encoding: 'protobuf' });
  t.teardown(() => client.close());
  const things = client.resource(Thing).namespace('n');
  const error = (await failureOf(things.get('a'))) as Error & { status?: Status };
  t.like(error, { code: 409, reason: 'Conflict' });
  t.deepEqual(error.status?.details, { name: 'a', kind: 'things' });
  code = 200;
  t.like(await things.delete('a'), { kind: 'Status', status: 'Success', details: { uid: 'u' } });
  t.is(decodeEnvelope(encodeProtobufStatus(refusal)).kind, 'Status');
});

test('watches in protobuf: frames may be split anywhere, ERROR is a Status, and an invalid frame is an error', async (t) => {
  const expired = encodeProtobufStatus(statusBody(410, 'Expired') as Status);
  const ends: Record<string, Buffer> = {
    error: frame('ERROR', expired),
    broken: frame('ADDED', Buffer.from('nothing')),
    other: frame('ADDED', encodeProtobufObject(Thing.schema, 'v1', 'Other', {})),
  };
  const { url } = await fakeServer(t, ({ url: path }, response) => {
    response.writeHead(200, { 'Content-Type': `${mediaType};stream=watch` });
    const end = ends[new URL(path, 'http://x').searchParams.get('labelSelector') ?? ''] ?? Buffer.alloc(0);
    const bytes = Buffer.concat([
      frame('ADDED', encoded(thing)),
      frame('BOOKMARK', encoded({ metadata: { resourceVersion: '7' } })),
      end,
    ]);
    for (const byte of bytes) response.write(Buffer.from([byte]));
    response.end();
  });
  const client = createHttpClient({ server: url, encoding: 'protobuf' });
  t.teardown(() => client.close());
  for (const labelSelector of Object.keys(ends)) {
    const seen: unknown[] = [];
    const error = await failureOf(
      (async () => {
        for await (const event of client.resource(Thing).watch({ labelSelector })) seen.push(event);
      })(),
    );
    t.deepEqual(seen[0], { type: 'ADDED', object: thing });
    t.like(seen[1], { type: 'BOOKMARK', object: { metadata: { resourceVersion: '7' } } });
    t.is(error.code as unknown, labelSelector === 'error' ? 410 : 'BadAnswer', labelSelector);
  }
});
