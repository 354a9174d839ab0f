import test from 'ava';
import { negotiate } from '../../../src/codec/negotiation.ts';
import { objectCodecOf } from '../../../src/codec/object-codec.ts';
import { listSchemaOf } from '../../../src/codec/protobuf/document-schemas.ts';
import {
  decodeProtobufEvent,
  parseProtobufBody,
  protobufDecoderOf,
} from '../../../src/codec/protobuf/protobuf-codec.ts';
import { protobufForms } from '../../../src/codec/protobuf/protobuf-form.ts';
import { decodeEnvelope } from '../../../src/codec/protobuf/wire.ts';
import { Representations } from '../../../src/codec/representations.ts';
import type { FormTarget, ListBody, WireForm } from '../../../src/codec/wire-form.ts';
import { defineKind } from '../../../src/kind/define-kind.ts';
import type { KindDefinition } from '../../../src/kind/kind-definition.ts';
import { listMetaSchema, objectMetaSchema } from '../../../src/kind/object-meta-schema.ts';
import { optional, type Schema, s } from '../../../src/kind/schema.ts';
import { statusSchema } from '../../../src/kind/status-schema.ts';
import { typeMetaFields } from '../../../src/kind/type-meta-fields.ts';
import type { KubeObject } from '../../../src/meta/types.ts';
import { FakeClock } from '../../../src/runtime/fake-clock.ts';
import { bookmarkEvent } from '../../../src/storage/resource-watch.ts';
import { StoredObject } from '../../../src/storage/stored-object.ts';
import { widgets as bare, page, source } from '../fixtures.ts';

interface Boat extends KubeObject {
  spec?: { length?: number; name?: string };
}

const sizeSchema = s.message('example.Size', 'Size.', {
  ...typeMetaFields,
  metadata: optional(1, objectMetaSchema, 'Metadata.'),
  length: optional(2, s.int32(), 'Length.'),
});

const schema = s.message('example.Boat', 'A boat.', {
  spec: optional(
    2,
    s.message('example.BoatSpec', 'Spec.', {
      length: optional(1, s.int32(), 'Length.'),
      name: optional(2, s.string(), 'Name.'),
    }),
    'Spec.',
  ),
});

const boats: KindDefinition<Boat> = defineKind({
  group: 'example.io',
  version: 'v1',
  kind: 'Boat',
  schema,
  subresources: [
    {
      type: 'projection',
      name: 'size',
      bodyKind: { group: 'sizes.io', version: 'v1', kind: 'Size' },
      schema: sizeSchema,
      read: () => ({}),
      write: () => undefined,
    },
  ],
});

/** Stored as a Boat; a name makes the difference more than one of the head. */
const oldBoats: KindDefinition<Boat> = defineKind({
  group: '',
  version: 'v1beta1',
  kind: 'OldBoat',
  schema,
  storage: {
    kind: boats,
    toStorage: (object) => object,
    fromStorage: (stored) => {
      const { spec, ...rest } = stored as Boat;
      if (spec === undefined) throw new TypeError('no spec');
      return { ...rest, spec: { ...spec, length: 99 }, kind: 'OldBoat', apiVersion: 'v1beta1' };
    },
    isRelabel: () => false,
  },
});

let revision = 100;
function stored(name: string, spec: Boat['spec'] = { length: 3 }): StoredObject {
  revision += 1;
  const metadata = { name, namespace: 'ns', creationTimestamp: '2024-01-02T03:04:05Z' };
  const object = { metadata, ...(spec === undefined ? {} : { spec }) };
  return StoredObject.fromValue(`/boats/ns/${name}`, revision, revision, objectCodecOf(boats).encode(object), source);
}

const whole: FormTarget = { as: 'Object' };
const metadata = (version = 'v1'): FormTarget => ({ as: 'PartialObjectMetadata', version });
const representations = new Representations({ clock: new FakeClock(0), builders: [protobufForms()] });
const form = (kind: KindDefinition, target: FormTarget = whole): WireForm =>
  representations.form(kind, { media: 'protobuf', pretty: false, target });
const joined = ({ head, items, tail }: ListBody): Buffer => Buffer.concat([head, ...items, tail]);

function read(bytes: Buffer, wanted: Schema<unknown>): Record<string, unknown> {
  const { apiVersion, kind, raw } = decodeEnvelope(bytes);
  return { kind, apiVersion, ...protobufDecoderOf(wanted)(raw) };
}

/** The older list of metadata, which numbers its fields the other way round. */
function oldListOf(items: Schema<unknown>): Schema<unknown> {
  return s.message('example.OldList', 'A list.', {
    metadata: optional(2, listMetaSchema, 'Metadata.'),
    items: optional(1, s.list(items), 'Items.'),
  });
}

/** The parts of a watch frame. */
function event(frame: Buffer): { type: string; object: Buffer } {
  const length = frame.readUInt32BE(0);
  if (length !== frame.length - 4) throw new Error(`length ${length} of ${frame.length - 4}`);
  return decodeProtobufEvent(frame.subarray(4));
}

test('a stored object is an envelope with the served kind around its message', (t) => {
  const one = stored('a', { length: 0, name: 'x' });
  const wire = form(boats);
  t.is(wire.contentType, 'application/vnd.kubernetes.protobuf');
  const bytes = wire.stored(one);
  const type = { apiVersion: 'example.io/v1', kind: 'Boat', schema: boats.schema };
  const { spec, metadata: meta } = parseProtobufBody(bytes, type) as Boat;
  t.deepEqual(spec, { name: 'x' });
  t.is(meta?.resourceVersion, String(one.revision));
  t.is(bytes.subarray(-4).toString('hex'), '1a002200');
});

test('each object is encoded once for answers, lists and events', (t) => {
  const one = stored('a');
  const wire = form(boats);
  let parses = 0;
  const value = one.value.bind(one);
  Object.defineProperty(one, 'value', {
    value: () => {
      parses += 1;
      return value();
    },
  });
  const single = wire.stored(one);
  const inList = joined(wire.list(page([one, one])));
  const frame = wire.watch()?.plain.encode('ADDED', one) as Buffer;
  wire.watch()?.chunked.encode('MODIFIED', one);
  t.is(parses, 1);
  const message = decodeEnvelope(single).raw;
  t.is(inList.indexOf(message) > 0 && frame.indexOf(message) > 0, true);
  t.is(form(boats), wire);
});

test('a kind stored as another is converted', (t) => {
  const value = read(form(oldBoats).stored(stored('a')), boats.schema) as Boat;
  t.is(value.kind, 'OldBoat');
  t.is(value.apiVersion, 'v1beta1');
  t.is(value.spec?.length, 99);
});

test('lists hold the same items, also very long and very large ones', (t) => {
  const many = Array.from({ length: 3000 }, (_, index) => stored(`boat-${index}`));
  const large = stored('large', { name: 'x'.repeat(100_000) });
  const listed = [large, ...many, large];
  const body = form(boats).list(page(listed, 'token', 7));
  t.false(body.ready);
  const value = read(joined(body), listSchemaOf(boats.schema)) as { items: Boat[]; metadata: object; kind: string };
  t.is(value.kind, 'BoatList');
  t.deepEqual(value.metadata, { resourceVersion: '500', continue: 'token', remainingItemCount: 7 });
  t.deepEqual(
    value.items.map(({ metadata: meta, spec }) => [meta?.name, spec]),
    listed.map((object) => [object.value().metadata?.name, object.value<Boat>().spec]),
  );
  const empty = read(joined(form(boats).list(page([]))), listSchemaOf(boats.schema));
  t.deepEqual(empty, { kind: 'BoatList', apiVersion: 'example.io/v1', metadata: { resourceVersion: '500' } });
});

test('the encoding of a long list yields to other work of the event loop', (t) => {
  const pieces = [...form(boats).list(page(Array.from({ length: 320 }, (_, index) => stored(`b${index}`)))).items];
  t.is(pieces.filter((piece) => piece.length === 0).length, 10);
});

test('partial object metadata is encoded in both versions of its list', (t) => {
  const items = s.message('example.Partial', 'Partial.', { metadata: optional(1, objectMetaSchema, 'Metadata.') });
  const large = stored('large');
  const huge = StoredObject.fromValue(
    '/boats/ns/huge',
    999,
    999,
    objectCodecOf(boats).encode({ metadata: { name: 'huge', annotations: { a: 'x'.repeat(100_000) } } }),
  );
  for (const [version, listSchema] of [
    ['v1', listSchemaOf(items)],
    ['v1beta1', oldListOf(items)],
  ] as const) {
    const wire = form(boats, metadata(version));
    const one = read(wire.stored(large), items) as Boat;
    t.deepEqual(
      [one.kind, one.apiVersion, one.metadata?.name],
      ['PartialObjectMetadata', `meta.k8s.io/${version}`, 'large'],
    );
    t.false('spec' in one);
    const list = read(joined(wire.list(page([large, huge, large]))), listSchema) as {
      kind: string;
      items: Boat[];
      metadata: object;
    };
    t.is(list.kind, 'PartialObjectMetadataList');
    t.deepEqual(list.metadata, { resourceVersion: '500' });
    t.deepEqual(
      list.items.map((item) => item.metadata?.name),
      ['large', 'huge', 'large'],
    );
  }
});

test('a watch frame is a length, an event and an envelope; HTTP/1.1 chunks around it are optional', (t) => {
  const one = stored('a');
  const watch = form(boats).watch();
  t.is(watch?.contentType, 'application/vnd.kubernetes.protobuf;stream=watch');
  const plain = watch?.plain.encode('DELETED', one) as Buffer;
  const { type, object } = event(plain);
  t.is(type, 'DELETED');
  t.deepEqual(object, form(boats).stored(one));
  const chunked = watch?.chunked.encode('DELETED', one) as Buffer;
  t.deepEqual(chunked, Buffer.concat([Buffer.from(`${plain.length.toString(16)}\r\n`), plain, Buffer.from('\r\n')]));
  t.not(watch?.plain.id, watch?.chunked.id);
});

test('bookmarks and errors in watches', (t) => {
  const mark = bookmarkEvent(boats, 77).object;
  for (const [kind, target] of [
    [boats, whole],
    [oldBoats, whole],
    [oldBoats, metadata()],
  ] as const) {
    const { type, object } = event(form(kind, target).watch()?.plain.encode('BOOKMARK', mark) as Buffer);
    t.is(type, 'BOOKMARK');
    const value = read(object, boats.schema) as Boat;
    t.is(value.metadata?.resourceVersion, '77');
    t.is(value.kind, target.as === 'Object' ? kind.kind : 'PartialObjectMetadata');
  }
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    code: 410,
    reason: 'Expired',
  } as const;
  const error = event(form(boats).watch()?.errorFrame(status) as Buffer);
  t.is(error.type, 'ERROR');
  t.deepEqual(read(error.object, statusSchema), status);
});

test('values that are not stored: the kind, bodies of its subresources, a Status', (t) => {
  const wire = form(boats);
  t.deepEqual(read(wire.value({ kind: 'Boat', apiVersion: 'example.io/v1', metadata: { name: 'a' } }), boats.schema), {
    kind: 'Boat',
    apiVersion: 'example.io/v1',
    metadata: { name: 'a' },
  });
  const size = { kind: 'Size', apiVersion: 'sizes.io/v1', metadata: { name: 'a' }, length: 4 };
  t.deepEqual(read(wire.value(size), sizeSchema), size);
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' } as const;
  t.deepEqual(read(wire.value(status), statusSchema), status);
  t.deepEqual(read(form(boats, metadata()).value(status), statusSchema), status);
  t.is(
    decodeEnvelope(form(boats, metadata()).value({ kind: 'Boat', metadata: { name: 'a' } })).kind,
    'PartialObjectMetadata',
  );
  t.throws(() => wire.value({ kind: 'Car', apiVersion: 'v1' }), { message: /Car of v1 has no protobuf form/ });
});

test('kinds without protobuf field numbers are offered only as metadata, and tables are not offered', (t) => {
  const media = 'application/vnd.kubernetes.protobuf';
  const as = (kind: string) => `${media};as=${kind};g=meta.k8s.io;v=v1`;
  const chosen = (accept: string, kind: KindDefinition, shape: 'object' | 'list' | 'watch') => {
    const found = negotiate(accept, representations.offers(kind, shape));
    return found && `${found.offer.media} ${found.target?.kind ?? 'Object'}`;
  };
  t.is(chosen(media, boats, 'object'), 'protobuf Object');
  t.is(chosen(`${media};stream=watch`, boats, 'watch'), 'protobuf Object');
  t.is(chosen(`${media},application/json`, boats, 'list'), 'protobuf Object');
  t.is(chosen(`${as('Table')},application/json;as=Table;g=meta.k8s.io;v=v1`, boats, 'list'), 'json Table');
  t.is(chosen('*/*', boats, 'list'), 'json Object');
  t.is(chosen(media, bare, 'object'), undefined);
  t.is(chosen(`${media};charset=utf-8`, bare, 'object'), undefined);
  t.is(chosen(`${media},application/json`, bare, 'object'), 'json Object');
  t.is(chosen(as('PartialObjectMetadata'), bare, 'object'), 'protobuf PartialObjectMetadata');
  t.is(chosen(as('PartialObjectMetadataList'), bare, 'list'), 'protobuf PartialObjectMetadataList');
  t.throws(() => representations.form(bare, { media: 'protobuf', pretty: false, target: whole }));
});

test('the media type follows the brand', (t) => {
  const brand = { vendor: 'acme', metaGroup: 'meta.acme.io' };
  const branded = new Representations({ clock: new FakeClock(0), brand, builders: [protobufForms(brand)] });
  const wire = branded.form(boats, { media: 'protobuf', pretty: false, target: metadata() });
  t.is(wire.contentType, 'application/vnd.acme.protobuf');
  t.is(decodeEnvelope(wire.stored(stored('a'))).apiVersion, 'meta.acme.io/v1');
});
