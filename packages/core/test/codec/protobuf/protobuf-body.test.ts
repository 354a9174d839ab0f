import test from 'ava';
import {
  decodeProtobufEvent,
  encodeProtobufObject,
  parseProtobufBody,
} from '../../../src/codec/protobuf/protobuf-codec.ts';
import { encodeProtobufDocument, encodeProtobufStatus } from '../../../src/codec/protobuf/protobuf-form.ts';
import {
  decodeEnvelope,
  encodeEnvelope,
  isEnvelope,
  isProtobufSyntaxError,
  ProtobufSyntaxError,
} from '../../../src/codec/protobuf/wire.ts';
import { deleteOptionsSchema } from '../../../src/kind/delete-options-schema.ts';
import { statusSchema } from '../../../src/kind/status-schema.ts';

const bytes = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const optionsType = { apiVersion: 'v1', kind: 'DeleteOptions', schema: deleteOptionsSchema };
const latin = (buffer: Buffer): string => buffer.toString('latin1');

test('an envelope is the prefix, the type, the object and two empty fields', (t) => {
  const body = encodeEnvelope('v1', 'Pod', Buffer.from('xyz'));
  t.is(body.toString('hex'), '6b387300 0a09 0a027631 1203506f64 120378797a 1a00 2200'.replaceAll(' ', ''));
  const { apiVersion, kind, raw, contentEncoding, contentType } = decodeEnvelope(body);
  t.deepEqual([apiVersion, kind, latin(raw), contentEncoding, contentType], ['v1', 'Pod', 'xyz', '', '']);
  const long = encodeEnvelope(`${'g'.repeat(100)}.example/v1`, 'K'.repeat(60), Buffer.alloc(20_000, 1));
  t.is(decodeEnvelope(long).apiVersion.length, 111);
  t.is(decodeEnvelope(long).raw.length, 20_000);
});

test('all fields of an envelope may be absent, in any order, with unknown ones between them', (t) => {
  t.deepEqual(decodeEnvelope(bytes('6b387300')), {
    apiVersion: '',
    kind: '',
    raw: Buffer.alloc(0),
    contentEncoding: '',
    contentType: '',
  });
  const mixed = decodeEnvelope(bytes('6b387300 4a0161 120161 0a0412024142 5001'));
  t.is(mixed.kind, 'AB');
  t.is(latin(mixed.raw), 'a');
});

test('a body with another prefix or without an envelope is rejected', (t) => {
  for (const text of [
    '',
    '6b',
    '6b387301',
    '7b7d',
    '6b387300 ff',
    '6b387300 0a05',
    '6b387300 0a020a05',
    '6b387300 0b',
  ]) {
    const error = t.throws(() => decodeEnvelope(bytes(text)), { instanceOf: ProtobufSyntaxError });
    t.true(isProtobufSyntaxError(error));
  }
  t.throws(() => decodeEnvelope(bytes('7b7d')), { message: /expected prefix 6b387300/ });
  t.false(isEnvelope(bytes('6b3873')));
});

test('a body is the JSON value of the same content', (t) => {
  const options = { gracePeriodSeconds: 0, preconditions: { uid: 'u' }, propagationPolicy: 'Orphan', dryRun: ['All'] };
  const body = encodeProtobufObject(deleteOptionsSchema, 'v1', 'DeleteOptions', options);
  t.deepEqual(parseProtobufBody(body, optionsType), { kind: 'DeleteOptions', apiVersion: 'v1', ...options });
  t.deepEqual(parseProtobufBody(encodeProtobufObject(deleteOptionsSchema, '', '', options), optionsType), options);
});

test('an object of another type is reported by its type and not decoded', (t) => {
  const garbage = Buffer.from([0xff, 0xff]);
  t.deepEqual(parseProtobufBody(encodeEnvelope('v1', 'Pod', garbage), optionsType), { kind: 'Pod', apiVersion: 'v1' });
  t.deepEqual(parseProtobufBody(encodeEnvelope('v2', '', garbage), optionsType), { apiVersion: 'v2' });
  const anyVersion = { kind: 'DeleteOptions', schema: deleteOptionsSchema };
  t.deepEqual(parseProtobufBody(encodeEnvelope('v2', '', bytes('0801')), anyVersion), {
    apiVersion: 'v2',
    gracePeriodSeconds: 1,
  });
});

test('the envelope may contain the object as JSON; other encodings are rejected', (t) => {
  const withType = (contentType: string, raw: string, encoding = ''): Buffer => {
    const field = (tag: number, text: string) => Buffer.concat([Buffer.of(tag, text.length), Buffer.from(text)]);
    return Buffer.concat([bytes('6b387300'), field(0x12, raw), field(0x1a, encoding), field(0x22, contentType)]);
  };
  t.deepEqual(parseProtobufBody(withType('application/json', '{"gracePeriodSeconds":1}'), optionsType), {
    gracePeriodSeconds: 1,
  });
  t.deepEqual(parseProtobufBody(withType('application/vnd.kubernetes.protobuf', '\u0008\u0001'), optionsType), {
    gracePeriodSeconds: 1,
  });
  t.deepEqual(parseProtobufBody(withType('application/vnd.acme.protobuf', '\u0008\u0001'), optionsType), {
    gracePeriodSeconds: 1,
  });
  for (const body of [
    withType('application/json', '{'),
    withType('application/json', '[]'),
    withType('application/yaml', 'a: 1'),
    withType('', '', 'gzip'),
  ]) {
    t.throws(() => parseProtobufBody(body, optionsType), { instanceOf: ProtobufSyntaxError });
  }
});

test('a Status', (t) => {
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'no such thing',
    reason: 'NotFound',
    details: { name: 'x', kind: 'pods', causes: [{ reason: 'R', field: 'f' }] },
    code: 404,
  } as const;
  const body = encodeProtobufStatus(status as never);
  t.is(latin(body.subarray(body.length - 4)), '\u001a\u0000"\u0000');
  t.deepEqual(parseProtobufBody(body, { apiVersion: 'v1', kind: 'Status', schema: statusSchema }), status);
});

test('discovery documents', (t) => {
  const list = {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: 'v1',
    resources: [
      { name: 'pods', singularName: 'pod', namespaced: true, kind: 'Pod', verbs: ['get', 'list'], shortNames: ['po'] },
    ],
  };
  const { apiVersion, kind, raw } = decodeEnvelope(encodeProtobufDocument(list));
  t.deepEqual([apiVersion, kind], ['v1', 'APIResourceList']);
  t.is(
    raw.toString('hex'),
    [
      '0a027631',
      '1223',
      ...['0a04706f6473', '3203706f64', '1001', '1a03506f64', '220b', '0a03676574', '0a046c697374', '2a02706f'],
    ].join(''),
  );
  const versions = {
    kind: 'APIVersions',
    versions: ['v1'],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: 'h:1' }],
  };
  t.is(decodeEnvelope(encodeProtobufDocument(versions)).kind, 'APIVersions');
  const group = {
    kind: 'APIGroup',
    apiVersion: 'v1',
    name: 'apps',
    versions: [{ groupVersion: 'apps/v1', version: 'v1' }],
  };
  t.true(latin(encodeProtobufDocument(group)).includes('apps/v1'));
  t.true(latin(encodeProtobufDocument({ kind: 'APIGroupList', groups: [group] })).includes('apps/v1'));
  t.throws(() => encodeProtobufDocument({ paths: [] }), { message: /no protobuf form/ });
  t.throws(() => encodeProtobufDocument({ kind: 'constructor' }), { message: /no protobuf form/ });
});

test('events of a stream', (t) => {
  const { type, object } = decodeProtobufEvent(bytes('0a054144444544 4001 1206 0a04 6b387300'));
  t.is(type, 'ADDED');
  t.is(object.toString('hex'), '6b387300');
  t.deepEqual(decodeProtobufEvent(Buffer.alloc(0)), { type: '', object: Buffer.alloc(0) });
  for (const text of ['0a05', '12060a05', '1203 0a 0461', '0b']) {
    t.throws(() => decodeProtobufEvent(bytes(text)), { instanceOf: ProtobufSyntaxError });
  }
});
