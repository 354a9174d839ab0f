import test from 'ava';
import fc from 'fast-check';
import { negotiate } from '../../src/codec/negotiation.ts';
import { objectCodecOf, relabel, servedJson } from '../../src/codec/object-codec.ts';
import { encodeDocument } from '../../src/codec/printed-form.ts';
import { type FormBuilder, Representations } from '../../src/codec/representations.ts';
import type { FormRequest, FormTarget, ListBody, ListPage, WireForm } from '../../src/codec/wire-form.ts';
import { parseYaml } from '../../src/codec/yaml.ts';
import type { KindDefinition } from '../../src/kind/kind-definition.ts';
import type { KubeObject } from '../../src/meta/types.ts';
import { FakeClock } from '../../src/runtime/fake-clock.ts';
import { bookmarkEvent } from '../../src/storage/resource-watch.ts';
import { StoredObject } from '../../src/storage/stored-object.ts';
import { gadgets, oldWidgets, page, stored, widgets } from './fixtures.ts';

const clock = new FakeClock(Date.parse('2024-01-02T03:04:35Z'));
const all = new Representations({ clock });
const object: FormTarget = { as: 'Object' };
const metadata: FormTarget = { as: 'PartialObjectMetadata', version: 'v1' };
const table = (includeObject: 'None' | 'Metadata' | 'Object' = 'Metadata', version = 'v1'): FormTarget => ({
  as: 'Table',
  version,
  includeObject,
});

const form = (kind: KindDefinition, target: FormTarget = object, rest: Partial<FormRequest> = {}): WireForm =>
  all.form(kind, { media: 'json', pretty: false, target, ...rest });
const text = (body: ListBody) => Buffer.concat([body.head, ...body.items, body.tail]).toString();
const listText = (wire: WireForm, listed: ListPage) => text(wire.list(listed));
const json = (bytes: Buffer | string) => JSON.parse(bytes.toString());

test('storage JSON begins with kind, apiVersion, metadata whatever the object is like, and has no resourceVersion', (t) => {
  const codec = objectCodecOf(widgets);
  const hostile = JSON.parse(
    '{"7":1,"spec":{"b":1,"a":2},"__proto__":{"x":1},"metadata":{"resourceVersion":"5","name":"n","selfLink":"/x"},"kind":"Other"}',
  );
  const bytes = codec.encode(hostile as KubeObject);
  t.is(
    bytes.toString(),
    '{"kind":"Widget","apiVersion":"example.io/v1","metadata":{"name":"n","selfLink":"/x"},"7":1,"spec":{"b":1,"a":2},"__proto__":{"x":1}}',
  );
  t.is(hostile.metadata.resourceVersion, '5');
  t.true(Object.hasOwn(codec.decode(bytes), '__proto__'));
  t.is(codec.encode({}).toString(), '{"kind":"Widget","apiVersion":"example.io/v1","metadata":{}}');
  t.is(objectCodecOf(widgets), codec);
});

test('a plain JSON answer is the stored bytes and a newline', (t) => {
  const one = stored(widgets, 'a', { spec: { size: 1 } });
  t.is(servedJson(widgets).stored, true);
  t.is(form(widgets).stored(one).toString(), `${one.json}\n`);
  t.is(form(widgets).contentType, 'application/json');
});

test('a plain JSON list is made of shared bytes', (t) => {
  const objects = [stored(widgets, 'a'), stored(widgets, 'b')];
  const body = form(widgets).list(page(objects, 'tok"en', 7));
  t.true(body.ready);
  t.is(
    text(body),
    `{"kind":"WidgetList","apiVersion":"example.io/v1","metadata":{"resourceVersion":"500","continue":"tok\\"en","remainingItemCount":7},"items":[${objects.map((o) => o.json).join()}]}\n`,
  );
  t.is(
    listText(form(widgets), page([])),
    '{"kind":"WidgetList","apiVersion":"example.io/v1","metadata":{"resourceVersion":"500"},"items":[]}\n',
  );
});

test('remainingItemCount is present only when the list has a further page', (t) => {
  t.false(listText(form(widgets), page([], '', 7)).includes('remainingItemCount'));
  t.false(listText(form(widgets), page([], 'x')).includes('remainingItemCount'));
});

test('an object of another served version is converted by replacing apiVersion in its bytes', (t) => {
  const one = stored(oldWidgets, 'a', { spec: { size: 1 } });
  const bytes = servedJson(oldWidgets).encode(one);
  t.is(
    bytes.toString(),
    one.json
      .toString()
      .replace(
        '{"kind":"Widget","apiVersion":"example.io/v1"',
        '{"kind":"OldWidget","apiVersion":"legacy.example.io/v1beta1"',
      ),
  );
  t.is(one.encoded(servedJson(oldWidgets)), one.encoded(servedJson(oldWidgets)), 'made once');
  t.is(relabel(Buffer.from('{"apiVersion":"example.io/v1"}'), widgets, oldWidgets), undefined);
});

test('an object that differs in more is converted, head and resourceVersion first all the same', (t) => {
  const one = stored(oldWidgets, 'a', { spec: { size: 1, old: 'x' } });
  const bytes = servedJson(oldWidgets).encode(one).toString();
  t.true(
    bytes.startsWith(
      `{"kind":"OldWidget","apiVersion":"legacy.example.io/v1beta1","metadata":{"resourceVersion":"${one.revision}","name":"a",`,
    ),
  );
  t.deepEqual(json(bytes).spec, { size: 1, old: 'x', note: 'converted' });
  t.is(json(listText(form(oldWidgets), page([one]))).items[0].spec.note, 'converted');
});

test('pretty JSON and YAML hold what compact JSON holds, for objects, lists, empty lists, tables and metadata', (t) => {
  const objects = [
    stored(gadgets, 'a', { spec: { size: 1, note: 'two\nlines\n' } }),
    stored(gadgets, 'b', { spec: { size: 2, note: '' } }),
  ];
  const first = objects[0] as StoredObject;
  for (const target of [object, metadata, table(), table('Object', 'v1beta1'), table('None')]) {
    const compact = form(gadgets, target);
    const pretty = form(gadgets, target, { pretty: true });
    const yaml = form(gadgets, target, { media: 'yaml' });
    t.is(yaml.contentType, 'application/yaml');
    t.is(pretty.stored(first).toString(), `${JSON.stringify(json(compact.stored(first)), null, 2)}\n`);
    t.deepEqual(parseYaml(yaml.stored(first)).value, json(compact.stored(first)));
    for (const listed of [page(objects), page([first], 'more', 3), page([])]) {
      const expected = json(listText(compact, listed));
      t.is(listText(pretty, listed), `${JSON.stringify(expected, null, 2)}\n`);
      t.deepEqual(parseYaml(Buffer.from(listText(yaml, listed))).value, expected);
    }
  }
});

test('metadata is extracted from the bytes, also when strings contain braces', (t) => {
  const one = stored(widgets, 'a', { spec: { size: 1 } });
  const value = json(one.json);
  t.deepEqual(json(form(widgets, metadata).stored(one)), {
    kind: 'PartialObjectMetadata',
    apiVersion: 'meta.k8s.io/v1',
    metadata: value.metadata,
  });
  const list = json(listText(form(widgets, { as: 'PartialObjectMetadata', version: 'v1beta1' }), page([one])));
  t.is(list.kind, 'PartialObjectMetadataList');
  t.is(list.apiVersion, 'meta.k8s.io/v1beta1');
  t.is(list.items[0].apiVersion, 'meta.k8s.io/v1beta1');
  const converted = stored(oldWidgets, 'b', { spec: { old: 'x' } });
  t.deepEqual(json(form(oldWidgets, metadata).stored(converted)).metadata, json(converted.json).metadata);
});

test('property: any metadata is found in any canonical JSON', (t) => {
  const codec = objectCodecOf(widgets);
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.string({ unit: 'binary' })), fc.jsonValue(), (annotations, spec) => {
      const value = JSON.parse(JSON.stringify({ metadata: { annotations, name: 'n' }, spec })) as KubeObject;
      const one = StoredObject.fromValue('/k', 9, 9, codec.encode(value));
      t.deepEqual(json(form(widgets, metadata).stored(one)).metadata, json(one.json).metadata);
    }),
  );
});

test('table of a list: columns, cells, conditions, metadata of each object', (t) => {
  const objects = [
    stored(gadgets, 'a', { spec: { size: 3 } }),
    stored(gadgets, 'b', { spec: { size: 4 }, status: { phase: 'Done' } }),
  ];
  const body = form(gadgets, table()).list(page(objects, 'next', 5));
  t.false(body.ready);
  const value = json(text(body));
  t.is(value.kind, 'Table');
  t.is(value.apiVersion, 'meta.k8s.io/v1');
  t.deepEqual(value.metadata, { resourceVersion: '500', continue: 'next', remainingItemCount: 5 });
  t.deepEqual(value.columnDefinitions[0], {
    name: 'Name',
    type: 'string',
    format: 'name',
    description: 'The name.',
    priority: 0,
  });
  t.deepEqual(value.columnDefinitions[2], {
    name: 'Age',
    type: 'string',
    format: '',
    description: 'The age.',
    priority: 1,
  });
  t.deepEqual(value.rows[0], {
    cells: ['a', 3, '30s'],
    object: {
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: json((objects[0] as StoredObject).json).metadata,
    },
  });
  t.deepEqual(value.rows[1].conditions, [{ type: 'Completed', status: 'True', reason: 'Done' }]);
});

test('table rows contain the object, its metadata or nothing, as requested, in the served version', (t) => {
  const one = stored(oldWidgets, 'a', { spec: { old: 'x' } });
  const whole = json(form(oldWidgets, table('Object')).stored(one)).rows[0].object;
  t.is(whole.kind, 'OldWidget');
  t.is(whole.spec.note, 'converted');
  t.false('object' in json(form(oldWidgets, table('None')).stored(one)).rows[0]);
});

test('table of one object: its resourceVersion, the default columns, and an age that grows', async (t) => {
  const one = stored(widgets, 'a');
  const value = json(form(widgets, table('Metadata', 'v1beta1')).stored(one));
  t.deepEqual(value.metadata, { resourceVersion: String(one.revision) });
  t.deepEqual(
    value.columnDefinitions.map((c: { name: string; type: string; format: string }) => [c.name, c.type, c.format]),
    [
      ['Name', 'string', 'name'],
      ['Created At', 'date', ''],
    ],
  );
  t.deepEqual(value.rows[0].cells, ['a', '2024-01-02T03:04:05Z']);
  const own = new FakeClock(Date.parse('2024-01-02T03:04:06Z'));
  const ages = new Representations({ clock: own }).form(gadgets, { media: 'json', pretty: false, target: table() });
  const aging = stored(gadgets, 'b', { spec: { size: 1 } });
  t.is(json(listText(ages, page([aging]))).rows[0].cells[2], '1s');
  own.advance(9000);
  t.is(json(listText(ages, page([aging]))).rows[0].cells[2], '10s');
});

test('a table cell that cannot be computed is empty, and the other cells are unaffected', (t) => {
  const rows = json(
    listText(form(gadgets, table()), page([stored(gadgets, 'a'), stored(gadgets, 'b', { spec: { size: 1 } })])),
  ).rows;
  t.deepEqual(
    rows.map((row: { cells: unknown[] }) => row.cells.slice(0, 2)),
    [
      ['a', null],
      ['b', 1],
    ],
  );
});

test('objects that are not stored are represented in the same forms; a Status remains a Status', (t) => {
  const value = { kind: 'Gadget', apiVersion: 'v1', metadata: { name: 'dry' }, spec: { size: 9 } };
  t.is(form(gadgets).value(value).toString(), `${JSON.stringify(value)}\n`);
  t.deepEqual(json(form(gadgets, metadata).value(value)), {
    kind: 'PartialObjectMetadata',
    apiVersion: 'meta.k8s.io/v1',
    metadata: { name: 'dry' },
  });
  const shown = json(form(gadgets, table()).value(value));
  t.deepEqual(shown.rows[0].cells.slice(0, 2), ['dry', 9]);
  t.is(shown.columnDefinitions.length, 3);
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' } as const;
  for (const target of [object, metadata, table()]) t.deepEqual(json(form(gadgets, target).value(status)), status);
  t.is(
    form(gadgets, table(), { media: 'yaml' }).value(status).toString(),
    'kind: Status\napiVersion: v1\nmetadata: {}\nstatus: Success\n',
  );
});

test('a body of another kind in a table has the default columns, described as such', (t) => {
  const scale = {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name: 'x', creationTimestamp: '2024-01-02T03:04:05Z' },
  };
  const shown = json(form(gadgets, table()).value(scale));
  t.is(shown.columnDefinitions.length, shown.rows[0].cells.length);
  t.is(shown.columnDefinitions[1].name, 'Created At');
});

test('a JSON watch has one line per event, optionally as an HTTP chunk', (t) => {
  const one = stored(widgets, 'ä', { spec: { note: 'ü' } });
  const watch = form(widgets).watch();
  const line = Buffer.from(`{"type":"MODIFIED","object":${one.json}}\n`);
  t.deepEqual(watch?.plain.encode('MODIFIED', one), line);
  t.deepEqual(
    watch?.chunked.encode('MODIFIED', one),
    Buffer.concat([Buffer.from(`${line.length.toString(16)}\r\n`), line, Buffer.from('\r\n')]),
  );
  for (const type of ['ADDED', 'DELETED', 'BOOKMARK'] as const)
    t.is(json(watch?.plain.encode(type, one) ?? '').type, type);
  t.is(watch?.first, undefined);
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code: 410 } as const;
  t.is(watch?.errorFrame(status).toString(), `{"type":"ERROR","object":${JSON.stringify(status)}}\n`);
});

test('watch events are converted to another version or to metadata; bookmarks are not converted', (t) => {
  const old = stored(oldWidgets, 'a', { spec: { size: 1 } });
  const bookmark = bookmarkEvent({ kind: 'Widget', apiVersion: 'example.io/v1' }, 77, {
    initialEventsEnd: true,
  }).object;
  const frame = (target: FormTarget, type: 'ADDED' | 'BOOKMARK', from: StoredObject) =>
    json(form(oldWidgets, target).watch()?.plain.encode(type, from) ?? '').object;
  t.is(frame(object, 'ADDED', old).kind, 'OldWidget');
  t.is(frame(object, 'BOOKMARK', bookmark).apiVersion, 'legacy.example.io/v1beta1');
  t.is(frame(object, 'BOOKMARK', bookmark).metadata.resourceVersion, '77');
  t.is(frame(metadata, 'ADDED', old).metadata.name, 'a');
  t.is(frame(metadata, 'BOOKMARK', bookmark).metadata.annotations['k8s.io/initial-events-end'], 'true');
  t.is(frame(table(), 'BOOKMARK', bookmark).metadata.resourceVersion, '77');
  t.is(frame(table(), 'BOOKMARK', bookmark).rows.length, 1);
  t.is(frame(table('Object'), 'BOOKMARK', bookmark).rows[0].object.metadata.resourceVersion, '77');
});

test('table watch: columns are described in the first event only, every event is a table of one row', (t) => {
  const one = stored(gadgets, 'a', { spec: { size: 3 } });
  const watch = form(gadgets, table()).watch();
  const first = json(watch?.first?.plain.encode('ADDED', one) ?? '').object;
  const next = json(watch?.plain.encode('ADDED', one) ?? '').object;
  t.is(first.columnDefinitions.length, 3);
  t.deepEqual(next.columnDefinitions, []);
  for (const event of [first, next]) {
    t.is(event.kind, 'Table');
    t.deepEqual(event.metadata, { resourceVersion: String(one.revision) });
    t.deepEqual(event.rows[0].cells, ['a', 3, '30s']);
  }
});

test('pretty watches are compact and share their frames', (t) => {
  t.is(form(widgets, object, { pretty: true }).watch(), form(widgets).watch());
});

test('a YAML watch has one document per event with the content of the JSON line', (t) => {
  const one = stored(gadgets, 'a', { spec: { size: 3, note: 'two\n---\n...\nlines ü\n' } });
  const document = (bytes: Buffer | undefined) => {
    const found = /^---\n([\s\S]*)\.\.\.\n$/.exec(bytes?.toString() ?? '');
    return parseYaml(Buffer.from(found?.[1] ?? '')).value;
  };
  const bookmark = bookmarkEvent({ kind: 'Gadget', apiVersion: 'v1' }, 77, { initialEventsEnd: true }).object;
  for (const target of [object, metadata, table('Object')]) {
    const watch = form(gadgets, target).watch();
    const yaml = form(gadgets, target, { media: 'yaml' }).watch();
    t.is(yaml, form(gadgets, target, { media: 'yaml' }).watch());
    t.is(yaml?.contentType, 'application/yaml');
    for (const type of ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK'] as const) {
      const from = type === 'BOOKMARK' ? bookmark : one;
      for (const [given, like] of [
        [yaml, watch],
        [yaml?.first, watch?.first],
      ]) {
        const frame = given?.plain.encode(type, from);
        if (like === undefined) t.is(frame, undefined);
        else t.deepEqual(document(frame), json(like.plain.encode(type, from)));
        if (frame === undefined) continue;
        const chunk = Buffer.concat([Buffer.from(`${frame.length.toString(16)}\r\n`), frame, Buffer.from('\r\n')]);
        t.deepEqual(given?.chunked.encode(type, from), chunk);
      }
    }
  }
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code: 410 } as const;
  const yaml = form(gadgets, object, { media: 'yaml' }).watch();
  t.deepEqual(document(yaml?.errorFrame(status)), { type: 'ERROR', object: status });
});

test('the same request gives the same form; ids differ wherever bytes differ', (t) => {
  t.is(form(widgets, table()), form(widgets, table()));
  t.not(form(widgets, table()), form(widgets, table('None')));
  const ids = new Set<string>();
  for (const kind of [widgets, gadgets, oldWidgets]) {
    for (const target of [
      object,
      metadata,
      { ...metadata, version: 'v1beta1' } as FormTarget,
      table(),
      table('None'),
    ]) {
      for (const media of ['json', 'yaml'] as const) {
        const watch = form(kind, target, { media }).watch();
        for (const pair of [watch, watch?.first])
          if (pair) for (const each of [pair.plain, pair.chunked]) t.false(ids.size === ids.add(each.id).size);
      }
    }
  }
});

test('the default is offered first, lists are not offered as the metadata of one object, and the vendor is configurable', (t) => {
  const types = (shape: 'object' | 'list' | 'watch') => all.offers(widgets, shape).map((offer) => offer.mediaType);
  t.deepEqual(types('object'), ['application/json', 'application/yaml']);
  t.deepEqual(types('watch'), ['application/json', 'application/yaml']);
  t.is(all.offers(widgets, 'watch')[1]?.stream, 'watch');
  const accept = (kind: string, group = 'meta.k8s.io') => `application/json;as=${kind};g=${group};v=v1`;
  const served = (kind: string, shape: 'object' | 'list' | 'watch', options = {}) =>
    negotiate(accept(kind), all.offers(widgets, shape, options)) !== undefined;
  t.true(served('PartialObjectMetadata', 'object'));
  t.false(served('PartialObjectMetadata', 'list'));
  t.true(served('PartialObjectMetadataList', 'list'));
  t.false(served('PartialObjectMetadataList', 'object'));
  t.true(served('PartialObjectMetadata', 'watch'));
  t.true(served('Table', 'watch'));
  t.false(served('Table', 'watch', { tables: false }));
  const branded = new Representations({ clock, brand: { vendor: 'acme', metaGroup: 'meta.acme.io' } });
  const chosen = negotiate(accept('Table', 'meta.acme.io'), branded.offers(widgets, 'list'));
  t.deepEqual(branded.target(chosen?.target, 'None'), { as: 'Table', version: 'v1', includeObject: 'None' });
  const own = branded.form(widgets, { media: 'json', pretty: false, target: branded.target(chosen?.target) });
  t.is(json(listText(own, page([]))).apiVersion, 'meta.acme.io/v1');
});

test('a further medium slots in: offered for the kinds it serves, without tables', (t) => {
  const wire = form(widgets);
  const builder: FormBuilder = {
    media: 'protobuf',
    targets: ['PartialObjectMetadata'],
    streams: true,
    serves: (kind) => kind === widgets,
    form: () => wire,
  };
  const extended = new Representations({ clock, builders: [builder] });
  t.deepEqual(
    extended.offers(widgets, 'watch').map((offer) => offer.media),
    ['json', 'yaml', 'protobuf'],
  );
  t.deepEqual(
    extended.offers(gadgets, 'watch').map((offer) => offer.media),
    ['json', 'yaml'],
  );
  const accept =
    'application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1, application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
  t.is(negotiate(accept, extended.offers(widgets, 'list'))?.target?.kind, 'PartialObjectMetadataList');
  t.is(extended.form(widgets, { media: 'protobuf', pretty: false, target: object }), wire);
  t.throws(() => extended.form(gadgets, { media: 'protobuf', pretty: false, target: object }));
});

test('documents that belong to no kind', (t) => {
  t.is(encodeDocument('json', { a: [1] }, false).toString(), '{"a":[1]}\n');
  t.is(encodeDocument('json', { a: [1] }, true).toString(), '{\n  "a": [\n    1\n  ]\n}\n');
  t.is(encodeDocument('yaml', { a: [1] }, true).toString(), 'a:\n- 1\n');
});
