import test from 'ava';
import { optional, s } from '../../src/index.ts';
import { applyJsonPatch, applyStrategicMergePatch, PatchError } from '../../src/internal.ts';

const element = s.message('x.Element', '', {
  name: optional(1, s.string(), ''),
  labels: optional(2, s.map(s.string()), ''),
  parts: optional(3, s.set(s.string()), ''),
});
const schema = s.message('x.Document', '', { items: optional(1, s.listByKey(element, 'name'), '') });

const range = <T>(length: number, of: (i: number) => T) => Array.from({ length }, (_, i) => of(i));
const mapOf = (count: number) => Object.fromEntries(range(count, (i) => [`k${i}`, '']));

/** Processor time of a patch in milliseconds; other processes do not count. */
function costOf(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Patches whose work would be the product of their own length and that of the document. */
const multiplying: Record<string, () => unknown> = {
  'elements that all merge into one with a large map': () =>
    applyStrategicMergePatch(
      { items: [{ name: 'a', labels: mapOf(50_000) }] },
      { items: range(30_000, () => ({ name: 'a', labels: { x: 'y' } })) },
      schema,
    ),
  'elements that all merge into one with a long list': () =>
    applyStrategicMergePatch(
      { items: [{ name: 'a', parts: range(50_000, (i) => `p${i}`) }] },
      { items: range(30_000, () => ({ name: 'a', parts: ['x'] })) },
      schema,
    ),
  'deletions from one long list': () =>
    applyStrategicMergePatch(
      { items: [{ name: 'a', parts: range(50_000, (i) => `p${i}`) }] },
      { items: range(30_000, () => ({ name: 'a', '$deleteFromPrimitiveList/parts': ['x'] })) },
      schema,
    ),
  'insertions at the head of a long list': () =>
    applyJsonPatch(
      range(500_000, (i) => i),
      range(10_000, () => ({ op: 'add', path: '/0', value: 1 })),
    ),
  'removals from the head of a long list': () =>
    applyJsonPatch(
      range(500_000, (i) => i),
      range(10_000, () => ({ op: 'remove', path: '/0' })),
    ),
  'moves within a long list': () =>
    applyJsonPatch(
      range(500_000, (i) => i),
      range(10_000, () => ({ op: 'move', from: '/0', path: '/1' })),
    ),
  'comparisons with a large map': () =>
    applyJsonPatch(
      { ...mapOf(100_000), small: {} },
      range(10_000, () => ({ op: 'test', path: '', value: {} })).map((test, i) =>
        i === 0 ? { op: 'test', path: '/small', value: {} } : test,
      ),
    ),
};

for (const [what, apply] of Object.entries(multiplying)) {
  test.serial(`a patch is refused before it causes unlimited work: ${what}`, (t) => {
    let error: unknown;
    const cost = costOf(() => {
      error = t.throws(apply);
    });
    t.true(error instanceof PatchError);
    t.true(cost < 2000, `${cost.toFixed(0)} ms`);
  });
}

test('patches of the largest size are applied as long as they touch each part a few times', (t) => {
  const items = range(30_000, (i) => ({ name: `n${i}`, labels: { a: 'b' } }));
  const names = items.map(({ name }) => ({ name })).reverse();
  const patch = { items: names.map((item) => ({ ...item, labels: { c: 'd' } })), '$setElementOrder/items': names };
  const patched = applyStrategicMergePatch({ items }, patch, schema) as { items: { name: string; labels: unknown }[] };
  t.is(patched.items.length, 30_000);
  t.deepEqual(patched.items[0], { name: 'n29999', labels: { a: 'b', c: 'd' } });

  const list = applyJsonPatch(
    range(1000, (i) => i),
    range(10_000, () => ({ op: 'add', path: '/0', value: -1 })),
  ) as number[];
  t.is(list.length, 11_000);
});
