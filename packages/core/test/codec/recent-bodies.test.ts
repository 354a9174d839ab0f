import test from 'ava';
import { RecentBodies } from '../../src/codec/json-form.ts';
import { StoredObject } from '../../src/storage/stored-object.ts';

const object = (revision: number, text = '') =>
  StoredObject.fromValue('/k', revision, 1, Buffer.from(JSON.stringify({ metadata: { name: 'n' }, text })));

test('every read of an object gets its document, reads after the second one the same bytes', (t) => {
  const bodies = new RecentBodies();
  const read = object(7);
  const expected = `${read.json.toString()}\n`;
  const [first, second, third] = [bodies.of(read), bodies.of(read), bodies.of(read)];
  for (const body of [first, second, third]) t.is(body.toString(), expected);
  t.not(first, second);
  t.is(second, third);
});

test('an object is never answered with the bytes of another one, whatever their revisions', (t) => {
  const bodies = new RecentBodies();
  const objects = [object(7, 'a'), object(7, 'b'), object(7 + 256, 'c'), object(7 + 512, 'd'), object(8, 'e')];
  for (let round = 0; round < 4; round += 1) {
    for (const each of [...objects, ...objects.toReversed()])
      t.is(bodies.of(each).toString(), `${each.json.toString()}\n`);
  }
});

test('large bodies are encoded again for every response', (t) => {
  const bodies = new RecentBodies();
  const large = object(7, 'x'.repeat(20_000));
  bodies.of(large);
  t.not(bodies.of(large), bodies.of(large));
});

test('bodies are kept within their budget', (t) => {
  const kept = (limitBytes: number) => {
    const bodies = new RecentBodies(limitBytes);
    const objects = [object(7), object(8)];
    for (let round = 0; round < 2; round += 1) for (const each of objects) bodies.of(each);
    return objects.map((each) => [bodies.of(each), bodies.of(each)]).filter(([a, b]) => a === b).length;
  };
  t.is(kept(2 * 16 * 1024), 2);
  t.is(kept(0), 0);
});
