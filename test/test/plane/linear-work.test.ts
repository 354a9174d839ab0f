import {
  internalContext,
  isStatusError,
  type KindDefinition,
  type KubeObject,
  labelSelectorOf,
  validateObjectMetaUpdate,
} from '@keelson/core';
import {
  applyJsonPatch,
  applyMergePatch,
  applyStrategicMergePatch,
  createCachedStorages,
  createContinueTokens,
  createResourceRegistry,
  decoderOf,
  isPatchError,
  parseJson,
  parseYaml,
  toYaml,
} from '@keelson/core/internal';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { builtinKinds } from '@keelson/kinds';
import { MemoryStore } from '@keelson/storage-memory';
import test from 'ava';
import { type CollectionField, collectionFields, collectionValue, objectWith } from '../../src/list-fields.ts';

/**
 * Growth of the cost and cost in milliseconds that are permitted when 1,000 items become 30,000. Data that exceed the
 * caches of the processor cost up to three times as much for each item; the cost of quadratic work grows 900 times.
 */
const maxGrowth = 120;
const maxMs = 1000;
/** Below this cost of the large case the growth is not judged: caches and garbage collection decide it. */
const smallMs = 160;
const few = 1000;
const many = 30_000;
/**
 * Objects beyond a thousand keys are hash tables with a cost of their own, so the small case of a map is one already;
 * its cost is halved.
 */
const fewKeys = 2 * few;

/** Fields that this run scans; the nightly run scans them all. */
const chosen = Number(process.env['KEELSON_SCANNED_FIELDS'] ?? '8');
const seed = Number(process.env['KEELSON_SEED'] ?? Date.now() % 1_000_000);

type Work = () => unknown;

/** Processor time of one run. Other processes on the machine do not count. */
async function costOf(work: Work): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

interface Cost {
  readonly few: number;
  readonly many: number;
}

const withinLimits = (cost: Cost) => cost.many <= maxMs && cost.many <= Math.max(maxGrowth * cost.few, smallMs);

/**
 * The least cost of several runs. Runs end as soon as the limits hold: a garbage collection counts into the run that it
 * meets.
 */
async function measure(workOf: (count: number) => Work, smallCount = few): Promise<Cost> {
  const [small, large] = [workOf(smallCount), workOf(many)];
  let cost: Cost = { few: Number.POSITIVE_INFINITY, many: Number.POSITIVE_INFINITY };
  for (let run = 0; run < 4; run += 1) {
    // The code is compiled in the first runs, so the small case runs more often.
    for (let i = 0; i < 3; i += 1)
      cost = { ...cost, few: Math.min(cost.few, (await costOf(small)) * (few / smallCount)) };
    cost = { ...cost, many: Math.min(cost.many, await costOf(large)) };
    if (withinLimits(cost) || cost.many > 10 * maxMs) return cost;
  }
  return cost;
}

const shown = ({ few: small, many: large }: Cost) =>
  `${few} items ${small.toFixed(1)} ms, ${many} items ${large.toFixed(1)} ms`;

/** A rejection is a valid result; every other error is a defect. */
async function refusable(work: Work): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isStatusError(error) && !isPatchError(error)) throw error;
    if (isStatusError(error) && error.code >= 500) throw error;
  }
}

const clock = systemClock;
const storages = createCachedStorages({ store: new MemoryStore({ clock }), clock });
const registry = createResourceRegistry({
  storages,
  tokens: createContinueTokens({ secret: Buffer.alloc(32, 7), fingerprint: 'test', clock }),
  clock,
  logger: silentLogger,
  admission: [],
  kinds: builtinKinds,
});
test.before(() => storages.start());
test.after.always(() => storages.stop());

const context = internalContext();
const hookContext = { request: context, now: new Date(), warn: () => {} };
const parameters = { dryRun: true, fieldValidation: 'Warn' } as const;
const target = (kind: KindDefinition) => (kind.scope === 'Namespaced' ? { namespace: 'default' } : {});

function serviceOf({ group, version, names }: KindDefinition) {
  const service = registry.find({ group, version, resource: names.plural });
  if (service === undefined) throw new Error(`no service for ${names.plural}`);
  return service;
}

/** A whole create: parse, decode, default, stamp, validate, encode. */
function creation(field: CollectionField, distinct: boolean) {
  const service = serviceOf(field.kind);
  return (count: number): Work => {
    const bytes = Buffer.from(JSON.stringify(objectWith(field, collectionValue(field.node, count, distinct))));
    return () => refusable(() => service.create(context, target(field.kind), { bytes, format: 'json' }, parameters));
  };
}

/** All hooks of a kind, also those that a create does not reach, with two objects that differ at the end. */
function hooks({ kind, ...field }: CollectionField, distinct: boolean) {
  const decode = (value: unknown) => {
    const object = decoderOf(kind.schema)(objectWith({ kind, ...field }, value)).value;
    kind.strategy.default?.(object);
    return object as KubeObject;
  };
  return (count: number): Work => {
    const value = collectionValue(field.node, count, distinct);
    const old = decode(value);
    const last = Array.isArray(value)
      ? [...value.slice(0, -1).reverse(), ...(collectionValue(field.node, 2, true) as [])]
      : value;
    const object = decode(last);
    return () => hookRun(kind, object, old);
  };
}

function hookRun(kind: KindDefinition, object: KubeObject, old: KubeObject): void {
  const { strategy } = kind;
  const copy = structuredClone(object);
  strategy.validate?.(copy);
  strategy.warnings?.(copy);
  strategy.validateUpdate?.(copy, old);
  strategy.validateStatusUpdate?.(copy, old);
  validateObjectMetaUpdate(copy.metadata ?? {}, { ...old.metadata, deletionTimestamp: '2026-01-02T12:00:00Z' });
  for (const column of kind.columns) column.value(copy, hookContext);
  kind.rowConditions?.(copy);
  for (const [, read] of kind.selectableFields) read(copy);
  strategy.prepareForUpdate?.(copy, old, hookContext);
  strategy.prepareForStatusUpdate?.(copy, old, hookContext);
  strategy.prepareForCreate?.(copy, hookContext);
  strategy.export?.(copy, true);
  if (kind.storage !== undefined) kind.storage.fromStorage(kind.storage.toStorage(structuredClone(object)));
}

/** A strategic merge patch that touches every element, in an order of its own, and deletes some. */
function strategicPatch(field: CollectionField) {
  return (count: number): Work => {
    const items = collectionValue(field.node, count, true);
    const document = objectWith(field, items);
    const patch = objectWith(field, Array.isArray(items) ? items.toReversed() : items);
    const parent = field.steps.slice(0, -1).reduce<unknown>((value, step) => {
      const element = Array.isArray(value) ? value[0] : value;
      return (element as Record<string, unknown>)[step];
    }, patch);
    const holder = (Array.isArray(parent) ? parent[0] : parent) as Record<string, unknown>;
    const name = field.steps.at(-1) ?? '';
    if (Array.isArray(items)) {
      holder[`$setElementOrder/${name}`] = items.toReversed();
      holder[`$deleteFromPrimitiveList/${name}`] = items.slice(0, count / 2);
    }
    return () =>
      refusable(() => {
        applyStrategicMergePatch(document, patch, field.kind.schema);
        applyMergePatch(document, patch);
      });
  };
}

/** A pseudo-random order that the seed repeats. */
function shuffled<T>(items: readonly T[]): T[] {
  let state = seed;
  const key = () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) | 0;
    return state >>> 0;
  };
  return items
    .map((item) => ({ item, order: key() }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item);
}

const fields = builtinKinds.flatMap(collectionFields);
/** Fields with code of their own, which are scanned in every run. */
const known = [
  'Pod metadata.ownerReferences',
  'Pod metadata.finalizers',
  'Pod metadata.labels',
  'Service spec.ipFamilies',
  'Service spec.clusterIPs',
  'CertificateSigningRequest status.conditions',
  'Pod spec.tolerations',
];
const titleOf = ({ kind, steps }: CollectionField) => `${kind.kind} ${steps.join('.')}`;
const scanned = shuffled(fields)
  .sort((a, b) => Number(known.includes(titleOf(b))) - Number(known.includes(titleOf(a))))
  .slice(0, chosen);

test.serial('work on a list or map of any kind grows with its length, not with its square', async (t) => {
  t.timeout(60 * 60_000);
  t.log(`${scanned.length} of ${fields.length} fields, KEELSON_SEED=${seed}`);
  t.true(fields.length > 1000);
  const tooCostly: string[] = [];
  for (const field of scanned) {
    for (const [what, workOf] of [
      ['create, distinct items', creation(field, true)],
      ['create, equal items', creation(field, false)],
      ['hooks, distinct items', hooks(field, true)],
      ['hooks, equal items', hooks(field, false)],
      ['strategic and merge patch', strategicPatch(field)],
    ] as const) {
      const cost = await measure(workOf, field.node.type === 'map' ? fewKeys : few);
      if (!withinLimits(cost)) tooCostly.push(`${titleOf(field)} of ${field.kind.apiVersion}, ${what}: ${shown(cost)}`);
    }
  }
  t.deepEqual(tooCostly, []);
});

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

/** Work on documents, patches and selectors of a length, apart from any kind. */
const documents: Record<string, (count: number) => Work> = {
  'JSON with repeated fields': (count) => {
    const bytes = Buffer.from(`{${numbers(count).map((i) => `"a${i >> 1}":1`)}}`);
    return () => parseJson(bytes, { duplicates: true });
  },
  'JSON that is not valid at its end': (count) => {
    const bytes = Buffer.from(`[${'{},\n'.repeat(count)}]`);
    return () => {
      try {
        parseJson(bytes, { duplicates: true });
      } catch {}
    };
  },
  'YAML list': (count) => {
    const bytes = Buffer.from(
      numbers(count)
        .map((i) => `- a${i}\n`)
        .join(''),
    );
    return () => parseYaml(bytes);
  },
  'YAML map with repeated fields': (count) => {
    const bytes = Buffer.from(
      numbers(count)
        .map((i) => `a${i >> 1}: 1\n`)
        .join(''),
    );
    return () => parseYaml(bytes);
  },
  'YAML block text': (count) => {
    const bytes = Buffer.from(`a: |\n${'  some text\n'.repeat(count)}`);
    return () => parseYaml(bytes);
  },
  'YAML flow collections': (count) => {
    const bytes = Buffer.from(`a: [${'{a: b}, '.repeat(count)}]`);
    return () => parseYaml(bytes);
  },
  'YAML folded and quoted text': (count) => {
    const bytes = Buffer.from(`a: "${'word\\n '.repeat(count)}"\nb: >\n${'  word\n\n'.repeat(count)}`);
    return () => parseYaml(bytes);
  },
  'YAML response': (count) => {
    const value = { a: numbers(count).map((i) => ({ name: `x${i}` })) };
    return () => toYaml(value);
  },
  'label selector with many values against as many objects': (count) => {
    const values = numbers(count).map((i) => `v${i}`);
    const selector = labelSelectorOf({ matchExpressions: [{ key: 'a', operator: 'In', values }] });
    return () => values.filter((value) => selector.matches({ a: value }));
  },
  'JSON patch of a list and a map': (count) => {
    const document = { list: numbers(count), map: Object.fromEntries(numbers(count).map((i) => [`k${i}`, i])) };
    const operations = numbers(1000).flatMap((i) => [
      { op: 'test', path: `/map/k${i}`, value: i },
      { op: 'replace', path: `/list/${i}`, value: 0 },
      { op: 'move', from: `/map/k${i}`, path: `/map/m${i}` },
      { op: 'copy', from: `/map/m${i}`, path: '/list/-' },
      { op: 'remove', path: '/list/0' },
    ]);
    return () => applyJsonPatch(document, operations);
  },
};

for (const [what, workOf] of Object.entries(documents)) {
  test.serial(`work on a document grows with its length, not with its square: ${what}`, async (t) => {
    const cost = await measure(workOf);
    t.true(withinLimits(cost), shown(cost));
  });
}
