import test from 'ava';
import fc from 'fast-check';
import {
  encodeEvents,
  type Representation,
  StorageMemory,
  StoredObject,
  spliceResourceVersion,
  type WatchEvent,
} from '../../src/internal.ts';
import { FakeClock } from '../../src/runtime.ts';
import { ByteBudget } from '../../src/storage/byte-budget.ts';
import { compactAttributes } from '../../src/storage/compact-attributes.ts';
import { joinObjects } from '../../src/storage/object-list.ts';
import { bookmarkEvent, SharedWatchEvent } from '../../src/storage/resource-watch.ts';
import { isSplicedFrom, restampResourceVersion } from '../../src/storage/stored-object.ts';

const canonical = (metadata: object, spec: unknown = {}) =>
  Buffer.from(JSON.stringify({ kind: 'Pod', apiVersion: 'v1', metadata, spec }));

const documents = fc.record({
  metadata: fc.oneof(fc.constant({}), fc.record({ name: fc.string({ unit: 'grapheme' }), uid: fc.string() })),
  spec: fc.jsonValue(),
});

const memory = new StorageMemory(new FakeClock());
const source = { sharedValues: false, memory };

test('the resourceVersion is inserted and replaced without other changes of the bytes', (t) => {
  fc.assert(
    fc.property(documents, fc.integer({ min: 1 }), fc.maxSafeInteger(), ({ metadata, spec }, first, second) => {
      const value = canonical(metadata, spec);
      const json = spliceResourceVersion('/x', value, first);
      t.deepEqual(
        JSON.parse(json.toString()),
        JSON.parse(canonical({ resourceVersion: String(first), ...metadata }, spec).toString()),
      );
      const again = restampResourceVersion(json, first, Math.abs(second) + 1);
      t.deepEqual(again, spliceResourceVersion('/x', value, Math.abs(second) + 1));
      t.true(isSplicedFrom(json, first, value));
    }),
  );
});

const identities = fc.record(
  {
    name: fc.oneof(fc.stringMatching(/^[a-z]{1,20}$/), fc.string({ unit: 'grapheme' })),
    generateName: fc.string(),
    namespace: fc.oneof(fc.stringMatching(/^[a-z]{1,20}$/), fc.string()),
    uid: fc.oneof(fc.uuid(), fc.string({ unit: 'grapheme' })),
    deletionTimestamp: fc.constant('2020-01-01T00:00:00Z'),
    labels: fc.dictionary(fc.constantFrom('uid', 'name', 'namespace', 'x'), fc.string()),
    annotations: fc.dictionary(
      fc.constantFrom('uid', 'name', 'y'),
      fc.oneof(fc.string(), fc.constant('"uid":"z","name":"')),
    ),
    ownerReferences: fc.constant([{ name: 'o', uid: 'u' }]),
    finalizers: fc.constant(['f']),
  },
  { requiredKeys: ['name', 'uid'] },
);

/** With names like those of metadata, and large: of such an object the metadata are cut out. */
const specs = fc.constantFrom<unknown>({}, { name: 'z', namespace: 'z', uid: 'z', labels: {} }, 'x'.repeat(3_000));

test('whose an object is, is found as a parse would find it', (t) => {
  fc.assert(
    fc.property(identities, specs, fc.boolean(), (metadata, spec, stamped) => {
      const value = canonical(metadata, spec);
      const object = stamped
        ? new StoredObject('/x', 7, 1, spliceResourceVersion('/x', value, 7))
        : StoredObject.fromValue('/x', 7, 1, value);
      const { name, namespace, uid, resourceVersion, ownerReferences, finalizers, deletionTimestamp } =
        object.ownership().metadata ?? {};
      const whole = object.value().metadata ?? {};
      t.deepEqual(
        { name, namespace, uid, resourceVersion, ownerReferences, finalizers, deletionTimestamp },
        {
          name: whole.name,
          namespace: whole.namespace,
          uid: whole.uid,
          resourceVersion: '7',
          ownerReferences: whole.ownerReferences,
          finalizers: whole.finalizers,
          deletionTimestamp: whole.deletionTimestamp,
        },
      );
    }),
  );
});

test('an object holds the bytes it was made of and no others', (t) => {
  fc.assert(
    fc.property(documents, documents, fc.integer({ min: 1 }), (a, b, revision) => {
      const [first, second] = [canonical(a.metadata, a.spec), canonical(b.metadata, b.spec)];
      const object = StoredObject.fromValue('/x', revision, 1, first);
      t.true(object.holds(first));
      t.is(object.holds(second), first.equals(second));
    }),
  );
  const object = StoredObject.fromValue('/x', 5, 1, canonical({ name: 'x' }));
  t.false(object.holds(Buffer.from('')));
  t.false(object.holds(object.json));
});

test('bytes without metadata near the beginning are reported as corrupt on every access', (t) => {
  for (const value of ['', '{}', 'x', `{"kind":"${'x'.repeat(600)}","metadata":{}}`]) {
    t.throws(() => StoredObject.fromValue('/x', 1, 1, Buffer.from(value)), { code: 'Corrupt' });
    const object = StoredObject.fromEntry({ key: '/x', value: Buffer.from(value), modRevision: 1, createRevision: 1 });
    t.true(object.corrupt);
    t.is(object.byteLength, 0);
    t.throws(() => object.json, { code: 'Corrupt' });
    t.throws(() => object.value(), { code: 'Corrupt' });
    t.true(object.restamped(2).corrupt);
    t.false(object.holds(Buffer.from(value)));
  }
  t.throws(() => StoredObject.fromValue('/x', 1, 1, Buffer.from('{"metadata":{broken')).value(), { code: 'Corrupt' });
});

test('an object keeps its bytes when they move into a block and out of it', (t) => {
  const object = StoredObject.fromValue('/x', 1, 1, canonical({ name: 'x' }, 'é'));
  const before = object.json.toString();
  const block = Buffer.alloc(1000, 0x2c);
  const end = object.copyTo(block, 17);
  object.moved(block, 17);
  t.is(end, 17 + object.byteLength);
  t.is(object.json.toString(), before);
  t.is(object.json.buffer, block.buffer);
  object.detach();
  t.not(object.json.buffer, block.buffer);
  block.fill(0);
  t.is(object.json.toString(), before);
});

test('selectable attributes are extracted once, and again by another extraction', (t) => {
  const object = StoredObject.fromValue('/x', 1, 1, canonical({ name: 'x', labels: { a: 'b' } }));
  let calls = 0;
  const one = () => ({ labels: { call: String(++calls) }, fields: new Map() });
  const two = () => ({ labels: { call: `other ${++calls}` }, fields: new Map() });
  t.is(object.selectable(one), object.selectable(one));
  t.is(calls, 1);
  t.is(object.selectable(two).labels['call'], 'other 2');
});

test('attributes have the same values in their compact form', (t) => {
  const strings = fc.string({ maxLength: 6 });
  fc.assert(
    fc.property(fc.dictionary(strings, strings), fc.dictionary(strings, strings), (labels, values) => {
      const fields = new Map(Object.entries(values));
      const compact = compactAttributes({ labels, fields });
      t.deepEqual(compact.labels, labels);
      t.deepEqual(new Map(compact.fields), fields);
      t.is(compact.fields.size, fields.size);
      for (const [path, value] of fields) t.is(compact.fields.get(path), value);
      for (const path of ['none', '__proto__', 'length', '0']) {
        t.is(compact.fields.get(path), fields.get(path));
        t.is(compact.fields.has(path), fields.has(path));
      }
      t.deepEqual([...compact.fields.keys()], [...fields.keys()]);
      t.deepEqual([...compact.fields.values()], [...fields.values()]);
      t.deepEqual([...compact.fields.entries()], [...fields.entries()]);
      const seen: string[] = [];
      compact.fields.forEach((value, path) => {
        seen.push(path, value);
      });
      t.deepEqual(seen, [...fields].flat());
      t.is(compactAttributes({ labels: { ...labels }, fields }).labels, compact.labels);
    }),
  );
});

test('other forms are made once and kept until they are dropped', (t) => {
  const object = StoredObject.fromValue('/x', 1, 1, canonical({ name: 'x' }), source);
  let made = 0;
  const form: Representation = { id: 'form', encode: () => Buffer.from(`form ${++made}`) };
  t.is(object.encoded(form).toString(), 'form 1');
  t.is(object.encoded(form).toString(), 'form 1');
  object.drop();
  t.is(object.encoded(form).toString(), 'form 2');
  t.deepEqual(object.encoded({ id: 'json', stored: true, encode: () => Buffer.alloc(0) }), object.json);
});

test('a byte budget drops the oldest first and never the newest', (t) => {
  const dropped: number[] = [];
  const budget = new ByteBudget(100);
  for (let i = 0; i < 5000; i++) budget.add({ drop: () => dropped.push(i) }, 30);
  t.true(budget.usedBytes <= 100);
  t.deepEqual(
    dropped,
    Array.from({ length: 4997 }, (_, i) => i),
  );
  budget.add({ drop: () => t.fail('the newest was dropped') }, 1000);
  t.is(budget.usedBytes, 1000);
});

test('objects of any size are joined by commas without loss', (t) => {
  const sizes = fc.array(
    fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 65_000, max: 66_000 }), fc.constant(200_000)),
    {
      maxLength: 12,
    },
  );
  fc.assert(
    fc.property(sizes, (lengths) => {
      const objects = lengths.map((length, i) =>
        StoredObject.fromValue(`/${i}`, i + 1, 1, canonical({}, 'x'.repeat(length))),
      );
      const expected = objects.map((object) => object.json.toString()).join(',');
      const stored: Representation = { id: 's', stored: true, encode: (object) => object.json };
      const copy: Representation = { id: 'c', encode: (object) => Buffer.from(object.json) };
      for (const form of [stored, copy]) t.is(Buffer.concat([...joinObjects(objects, form)]).toString(), expected);
    }),
    { numRuns: 40 },
  );
});

test('events that are read together are encoded once for all readers of the same array', (t) => {
  const object = StoredObject.fromValue('/x', 1, 1, canonical({ name: 'x' }), source);
  const events: WatchEvent[] = [
    new SharedWatchEvent('ADDED', object),
    bookmarkEvent({ kind: 'Pod', apiVersion: 'v1' }, 7, { memory }),
  ];
  let made = 0;
  const frame = { id: 'frame', encode: (type: string) => Buffer.from(`${type}${++made};`) };
  t.is(encodeEvents(events, frame).toString(), 'ADDED1;BOOKMARK2;');
  t.is(encodeEvents(events, frame), encodeEvents(events, frame));
  t.is(encodeEvents(events.slice(), frame).toString(), 'ADDED1;BOOKMARK2;', 'frames are kept by the events');
  t.is(encodeEvents(events.slice(0, 1), frame), events[0]!.encoded(frame));
  t.is(encodeEvents([], frame).length, 0);
});
