import { isStatusError, type StatusError } from '@keelson/core';
import test, { type ExecutionContext } from 'ava';
import { createThings, ownersOf, type Spec } from './thing.ts';

/** Two configurations of one kind of item, and what they own. */
interface Item {
  readonly name: string;
  readonly one: Spec;
  readonly two: Spec;
  /** Paths that the first configuration owns; those of the second where they differ. */
  readonly owns: readonly string[];
  readonly owns2?: readonly string[];
  /** Paths of the first that the second changes. */
  readonly contested: readonly string[];
  /** The spec with both, where they do not contradict each other. */
  readonly both?: Spec;
}

const e = '.lm[name="e"]';
const tcp = '.lm2[port=1,protocol="TCP"]';
const udp = '.lm2[port=1,protocol="UDP"]';

const items: readonly Item[] = [
  { name: 'number', one: { n: 1 }, two: { n: 2 }, owns: ['.n'], contested: ['.n'] },
  { name: 'zero', one: { n: 0 }, two: { n: 2 }, owns: ['.n'], contested: ['.n'] },
  { name: 'boolean', one: { b: true }, two: { b: false }, owns: ['.b'], contested: ['.b'] },
  { name: 'string', one: { s: 'a' }, two: { s: '' }, owns: ['.s'], contested: ['.s'] },
  { name: 'quantity', one: { q: '1' }, two: { q: '2Gi' }, owns: ['.q'], contested: ['.q'] },
  { name: 'number or string', one: { ios: 1 }, two: { ios: '10%' }, owns: ['.ios'], contested: ['.ios'] },
  {
    name: 'time',
    one: { t: '2026-01-01T00:00:00Z' },
    two: { t: '2026-01-02T00:00:00Z' },
    owns: ['.t'],
    contested: ['.t'],
  },
  { name: 'key of a map', one: { m: { a: '1' } }, two: { m: { a: '2' } }, owns: ['.m.a'], contested: ['.m.a'] },
  {
    name: 'two keys of a map',
    one: { m: { a: '1' } },
    two: { m: { b: '2' } },
    owns: ['.m.a'],
    owns2: ['.m.b'],
    contested: [],
    both: { m: { a: '1', b: '2' } },
  },
  {
    name: 'key of a map in a map',
    one: { mm: { a: { b: '1' } } },
    two: { mm: { a: { b: '2' } } },
    owns: ['.mm.a', '.mm.a.b'],
    contested: ['.mm.a.b'],
  },
  {
    name: 'keys like members of objects',
    one: { m: { constructor: '1' } },
    two: { m: { constructor: '2' } },
    owns: ['.m.constructor'],
    contested: ['.m.constructor'],
  },
  { name: 'atomic map', one: { am: { a: '1' } }, two: { am: { b: '2' } }, owns: ['.am'], contested: ['.am'] },
  {
    name: 'field of an object',
    one: { st: { x: '1' } },
    two: { st: { x: '2' } },
    owns: ['.st.x'],
    contested: ['.st.x'],
  },
  {
    name: 'two fields of an object',
    one: { st: { x: '1' } },
    two: { st: { y: '2' } },
    owns: ['.st.x'],
    owns2: ['.st.y'],
    contested: [],
    both: { st: { x: '1', y: '2' } },
  },
  { name: 'atomic object', one: { as: { x: '1' } }, two: { as: { y: '2' } }, owns: ['.as'], contested: ['.as'] },
  {
    name: 'elements of a set',
    one: { set: ['a'] },
    two: { set: ['b'] },
    owns: ['.set[="a"]'],
    owns2: ['.set[="b"]'],
    contested: [],
    both: { set: ['a', 'b'] },
  },
  {
    name: 'elements of a set of numbers',
    one: { nset: [1] },
    two: { nset: [2] },
    owns: ['.nset[=1]'],
    owns2: ['.nset[=2]'],
    contested: [],
    both: { nset: [1, 2] },
  },
  { name: 'list without a type', one: { al: ['a'] }, two: { al: ['a', 'b'] }, owns: ['.al'], contested: ['.al'] },
  {
    name: 'list of objects without a type',
    one: { als: [{ x: '1' }] },
    two: { als: [{ x: '2' }] },
    owns: ['.als'],
    contested: ['.als'],
  },
  {
    name: 'field of an element',
    one: { lm: [{ name: 'e', v: '1' }] },
    two: { lm: [{ name: 'e', v: '2' }] },
    owns: [e, `${e}.name`, `${e}.v`],
    contested: [`${e}.v`],
  },
  {
    name: 'two fields of an element',
    one: { lm: [{ name: 'e', v: '1' }] },
    two: { lm: [{ name: 'e', w: '2' }] },
    owns: [e, `${e}.name`, `${e}.v`],
    owns2: [e, `${e}.name`, `${e}.w`],
    contested: [],
    both: { lm: [{ name: 'e', v: '1', w: '2' }] },
  },
  {
    name: 'two elements',
    one: { lm: [{ name: 'e' }] },
    two: { lm: [{ name: 'f' }] },
    owns: [e, `${e}.name`],
    owns2: ['.lm[name="f"]', '.lm[name="f"].name'],
    contested: [],
    both: { lm: [{ name: 'e' }, { name: 'f' }] },
  },
  {
    name: 'map in an element',
    one: { lm: [{ name: 'e', m: { k: '1' } }] },
    two: { lm: [{ name: 'e', m: { k: '2' } }] },
    owns: [e, `${e}.m.k`, `${e}.name`],
    contested: [`${e}.m.k`],
  },
  {
    name: 'set in an element',
    one: { lm: [{ name: 'e', set: ['1'] }] },
    two: { lm: [{ name: 'e', set: ['2'] }] },
    owns: [e, `${e}.name`, `${e}.set[="1"]`],
    owns2: [e, `${e}.name`, `${e}.set[="2"]`],
    contested: [],
    both: { lm: [{ name: 'e', set: ['1', '2'] }] },
  },
  {
    name: 'element with two keys, one of them a default',
    one: { lm2: [{ port: 1, v: '1' }] },
    two: { lm2: [{ port: 1, protocol: 'TCP', v: '2' }] },
    owns: [tcp, `${tcp}.port`, `${tcp}.v`],
    owns2: [tcp, `${tcp}.port`, `${tcp}.protocol`, `${tcp}.v`],
    contested: [`${tcp}.v`],
  },
  {
    name: 'elements that differ in the second key',
    one: { lm2: [{ port: 1, protocol: 'TCP' }] },
    two: { lm2: [{ port: 1, protocol: 'UDP' }] },
    owns: [tcp, `${tcp}.port`, `${tcp}.protocol`],
    owns2: [udp, `${udp}.port`, `${udp}.protocol`],
    contested: [],
    both: {
      lm2: [
        { port: 1, protocol: 'TCP' },
        { port: 1, protocol: 'UDP' },
      ],
    },
  },
  {
    name: 'object without schema',
    one: { any: { a: { b: 1 } } },
    two: { any: { a: { b: 2 } } },
    owns: ['.any.a', '.any.a.b'],
    contested: ['.any.a.b'],
  },
  {
    name: 'list without schema',
    one: { any: { l: [1] } },
    two: { any: { l: [2] } },
    owns: ['.any.l'],
    contested: ['.any.l'],
  },
  { name: 'extension', one: { raw: { a: 1 } }, two: { raw: { a: 2 } }, owns: ['.raw.a'], contested: ['.raw.a'] },
];

const plane = createThings();

test.after.always(async () => (await plane).stop());

type Thing = ReturnType<Awaited<ReturnType<typeof createThings>>['thing']>;
type Scenario = (t: ExecutionContext, item: Item, thing: Thing) => Promise<void>;

const sorted = (paths: readonly string[]) => [...paths].sort();
const secondOf = (item: Item) => sorted(item.owns2 ?? item.owns);
const without = (paths: readonly string[], removed: readonly string[]) =>
  sorted(paths.filter((path) => !removed.includes(path)));

/** Owners without those that own nothing. */
const present = (owners: Record<string, string[]>) =>
  Object.fromEntries(Object.entries(owners).filter(([, paths]) => paths.length > 0));

async function conflictOf(write: Promise<unknown>): Promise<StatusError | undefined> {
  try {
    await write;
    return undefined;
  } catch (error) {
    if (isStatusError(error) && error.code === 409) return error as StatusError;
    throw error;
  }
}

async function assertConflict(t: ExecutionContext, item: Item, owner: string, write: Promise<unknown>): Promise<void> {
  const error = await conflictOf(write);
  t.is(error?.reason, 'Conflict');
  t.deepEqual(
    error?.status.details?.causes,
    item.contested.map((path) => ({
      reason: 'FieldManagerConflict',
      message: `conflict with ${owner}`,
      field: `.spec${path}`,
    })),
  );
}

const scenarios: Readonly<Record<string, Scenario>> = {
  'an apply creates the object and owns what it states': async (t, item, thing) => {
    const applied = await thing.apply('a', item.one);
    t.deepEqual(ownersOf(applied), { a: sorted(item.owns) });
    t.like(applied, { metadata: { name: thing.name }, kind: 'Thing' });
  },
  'a second manager with the same values shares them': async (t, item, thing) => {
    const first = await thing.apply('a', item.one);
    const second = await thing.apply('b', item.one);
    t.deepEqual(ownersOf(second), { a: sorted(item.owns), b: sorted(item.owns) });
    t.deepEqual({ ...second, metadata: {} }, { ...first, metadata: {} });
  },
  'a second manager with other values conflicts': async (t, item, thing) => {
    const first = await thing.apply('a', item.one);
    const second = thing.apply('b', item.two);
    if (item.contested.length > 0) {
      await assertConflict(t, item, '"a"', second);
      t.deepEqual(await thing.get(), first);
    } else {
      t.like(await second, { spec: item.both });
      t.deepEqual(ownersOf(await thing.get()), { a: sorted(item.owns), b: secondOf(item) });
    }
  },
  'force takes the contested fields': async (t, item, thing) => {
    await thing.apply('a', item.one);
    const forced = await thing.apply('b', item.two, { force: true });
    t.deepEqual(ownersOf(forced), present({ a: without(item.owns, item.contested), b: secondOf(item) }));
    t.like(forced, { spec: item.both ?? item.two });
  },
  'an update takes what it changes': async (t, item, thing) => {
    await thing.apply('a', item.one);
    const updated = await thing.update('u', item.both ?? item.two);
    const owners = ownersOf(updated);
    t.deepEqual(owners['a'] ?? [], without(item.owns, item.contested));
    t.true((owners['u~'] ?? []).length > 0);
    for (const path of item.contested) t.true(owners['u~']?.includes(path), path);
  },
  'an apply conflicts with an update': async (t, item, thing) => {
    await thing.apply('a', item.one);
    await thing.update('u', item.both ?? item.two);
    const again = thing.apply('a', item.one);
    if (item.contested.length > 0) await assertConflict(t, item, '"u" using apply.example.com/v1', again);
    else t.like(await again, { spec: item.both });
  },
  'fields that a manager gives up are removed': async (t, item, thing) => {
    await thing.apply('a', { ...item.one, n: 7 });
    const reduced = await thing.apply('a', { n: 7 });
    t.deepEqual(ownersOf(reduced), { a: ['.n'] });
    const { n, ...rest } = (reduced as unknown as { spec: Spec }).spec;
    t.is(n, 7);
    for (const value of Object.values(rest)) t.is(Object.keys(value as object).length, 0);
  },
  'fields that a manager gives up remain for the managers that share them': async (t, item, thing) => {
    await thing.apply('a', item.one);
    const shared = await thing.apply('b', item.one);
    const released = await thing.apply('a', {});
    t.deepEqual((released as unknown as { spec: Spec }).spec, (shared as unknown as { spec: Spec }).spec);
    t.deepEqual(ownersOf(released), { a: [''], b: sorted(item.owns) });
  },
  'fields that an update removes have no owner': async (t, item, thing) => {
    await thing.apply('a', { ...item.one, s: 'kept' });
    const updated = await thing.update('u', { s: 'kept' });
    const { a = [] } = ownersOf(updated);
    t.deepEqual(a, item.name === 'string' ? ['.s'] : without(['.s'], item.contested));
  },
  'the first apply conflicts with what existed before': async (t, item, thing) => {
    await thing.create(item.one);
    const first = thing.apply('a', item.two);
    if (item.contested.length > 0)
      await assertConflict(t, item, '"before-first-apply" using apply.example.com/v1', first);
    else t.like(await first, { spec: item.both });
  },
  'the first apply of the same values changes nothing but owners': async (t, item, thing) => {
    const created = await thing.create(item.one);
    const applied = await thing.apply('a', item.one);
    t.deepEqual((applied as unknown as { spec: Spec }).spec, (created as unknown as { spec: Spec }).spec);
    t.deepEqual(ownersOf(applied)['a'], sorted(item.owns));
    t.is(applied.metadata.generation, 1);
  },
  'a repeated apply is no write': async (t, item, thing) => {
    const first = await thing.apply('a', item.one);
    (await plane).clock.advance(60_000);
    const second = await thing.apply('a', item.one);
    t.is(second.metadata.resourceVersion, first.metadata.resourceVersion);
    t.deepEqual(second, first);
  },
};

for (const [title, scenario] of Object.entries(scenarios)) {
  for (const item of items) {
    test(`${title}: ${item.name}`, async (t) => scenario(t, item, (await plane).thing()));
  }
}
