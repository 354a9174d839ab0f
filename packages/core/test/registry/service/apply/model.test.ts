import { isStatusError } from '@keelson/core';
import test from 'ava';
import fc from 'fast-check';
import { createThings, ownersOf, type Spec } from './thing.ts';

/**
 * A model of objects as sets of paths with values. It knows nothing of schemas and trees: an element of a list is a
 * path of its own, and removing it removes everything below.
 */
class Model {
  values = new Map<string, unknown>();
  readonly owners = new Map<string, Set<string>>();
  #applied = false;

  /** The paths of the keys that the owner's entry contains, or the conflicts. */
  apply(manager: string, spec: Spec, force: boolean): string[] {
    const wanted = flatten(spec);
    const next = new Map([...this.values, ...wanted]);
    if (this.owners.size === 0 && this.values.size > 0)
      this.owners.set('before-first-apply~', new Set(this.values.keys()));
    const others = [...this.owners].filter(([owner]) => owner !== manager);
    const conflicts: string[] = [];
    for (const [, paths] of others)
      for (const path of paths)
        if (wanted.has(path) && wanted.get(path) !== this.values.get(path)) conflicts.push(path);
    if (conflicts.length > 0 && !force) {
      if (this.owners.get('before-first-apply~')?.size === this.values.size && others.length === 1 && !this.#applied)
        this.owners.delete('before-first-apply~');
      return conflicts.sort();
    }
    this.#applied = true;
    const last = this.owners.get(manager) ?? new Set();
    for (const path of last) {
      if (wanted.has(path) || others.some(([, paths]) => paths.has(path))) continue;
      for (const below of [...next.keys()]) if (below === path || below.startsWith(`${path}.`)) next.delete(below);
    }
    this.#settle(next, manager);
    this.owners.set(manager, new Set(wanted.keys()));
    return [];
  }

  update(manager: string, spec: Spec): void {
    const next = flatten(spec);
    const changed = [...next].filter(([path, value]) => this.values.get(path) !== value).map(([path]) => path);
    const tracked = this.owners.size > 0;
    this.#settle(next, undefined);
    if (!tracked || changed.length === 0) return;
    const owner = `${manager}~`;
    this.owners.set(owner, new Set([...(this.owners.get(owner) ?? []), ...changed]));
  }

  /** Takes changed and removed paths from all owners but one. */
  #settle(next: Map<string, unknown>, self: string | undefined): void {
    for (const [owner, paths] of this.owners) {
      if (owner === self) continue;
      for (const path of [...paths])
        if (!this.values.has(path) ? next.has(path) : next.get(path) !== this.values.get(path)) paths.delete(path);
      if (paths.size === 0) this.owners.delete(owner);
    }
    this.values = next;
  }
}

/** Every leaf and every element of a spec by its path. */
function flatten(spec: Spec): Map<string, unknown> {
  const paths = new Map<string, unknown>();
  for (const name of ['n', 's', 'b']) if (spec[name] !== undefined) paths.set(`.${name}`, spec[name]);
  if (spec['al'] !== undefined) paths.set('.al', JSON.stringify(spec['al']));
  for (const [key, value] of Object.entries((spec['m'] as Spec | undefined) ?? {})) paths.set(`.m.${key}`, value);
  for (const value of (spec['set'] as string[] | undefined) ?? []) paths.set(`.set[="${value}"]`, true);
  for (const item of (spec['lm'] as Spec[] | undefined) ?? []) {
    const at = `.lm[name="${item['name']}"]`;
    paths.set(at, true);
    for (const [key, value] of Object.entries(item)) paths.set(`${at}.${key}`, value);
  }
  return paths;
}

const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const defined = (spec: object): Spec => JSON.parse(JSON.stringify(spec)) as Spec;
const word = fc.constantFrom('1', '2', '3');

const elements = fc.uniqueArray(
  fc.record({ name: fc.constantFrom('e', 'f', 'g'), v: some(word), w: some(word) }).map(defined),
  { maxLength: 3, minLength: 1, selector: (item) => item['name'] },
);

const specs = fc
  .record({
    n: some(fc.integer({ min: 1, max: 3 })),
    s: some(word),
    b: some(fc.boolean()),
    al: some(fc.array(word, { maxLength: 2, minLength: 1 })),
    m: some(fc.dictionary(fc.constantFrom('a', 'b', 'c'), word, { minKeys: 1, noNullPrototype: true })),
    set: some(fc.uniqueArray(word, { maxLength: 3, minLength: 1 })),
    lm: some(elements),
  })
  .map(defined)
  // An empty spec would itself be owned.
  .filter((spec) => Object.keys(spec).length > 0);

const manager = fc.constantFrom('a', 'b', 'c');
const steps = fc.array(
  fc.oneof(
    {
      arbitrary: fc.record({ op: fc.constant('apply' as const), manager, spec: specs, force: fc.boolean() }),
      weight: 3,
    },
    {
      arbitrary: fc.record({ op: fc.constant('update' as const), manager, spec: specs, force: fc.constant(false) }),
      weight: 1,
    },
  ),
  { minLength: 2, maxLength: 10 },
);

/** Updates also own the containers that they add, which the model does not know. */
const containers = ['', '.m', '.set', '.lm'];

const asText = (paths: Iterable<string>) => [...paths].sort();

/** The paths that a 409 names, sorted; none when the write succeeds. */
async function conflictsOf(write: Promise<unknown>): Promise<string[]> {
  try {
    await write;
    return [];
  } catch (error) {
    if (!isStatusError(error) || error.code !== 409) throw error;
    return (error.status.details?.causes ?? []).map(({ field = '' }) => field.slice('.spec'.length)).sort();
  }
}

test('random applies and updates of several managers agree with a model of paths', async (t) => {
  const things = await createThings();
  t.teardown(() => things.stop());
  const runs = process.env['KEELSON_TEST_FULL'] ? 3000 : 150;
  await fc.assert(
    fc.asyncProperty(some(specs), steps, async (initial, sequence) => {
      const thing = things.thing();
      const model = new Model();
      if (initial !== undefined) {
        await thing.create(initial);
        model.values = flatten(initial);
      }
      for (const { op, manager: name, spec, force } of sequence) {
        if (op === 'update') {
          if (model.values.size === 0) continue;
          await thing.update(name, spec);
          model.update(name, spec);
        } else {
          const expected = model.apply(name, spec, force);
          const all = await conflictsOf(thing.apply(name, spec, { force }));
          const conflicts = all.filter((path) => !containers.includes(path));
          // An update still owns a container that applies have emptied since, as in Kubernetes.
          if (all.length > 0 && conflicts.length === 0) await thing.apply(name, spec, { force: true });
          t.deepEqual(conflicts, expected);
          if (model.values.size === 0) continue;
        }
        const object = await thing.get();
        t.deepEqual(asText(flatten((object as { spec?: Spec }).spec ?? {}).keys()), asText(model.values.keys()));
        t.deepEqual(
          Object.fromEntries(flatten((object as { spec?: Spec }).spec ?? {})),
          Object.fromEntries(model.values),
        );
        const owners = Object.entries(ownersOf(object))
          .map(([owner, paths]) => [owner, paths.filter((path) => !containers.includes(path))] as const)
          .filter(([, paths]) => paths.length > 0);
        t.deepEqual(
          owners.map(([owner, paths]) => [owner, asText(paths)]).sort(),
          [...model.owners].map(([owner, paths]) => [owner, asText(paths)]).sort(),
        );
      }
    }),
    { numRuns: runs },
  );
});
