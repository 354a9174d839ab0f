import { readFileSync } from 'node:fs';
import type { KindDefinition } from '@keelson/core';
import test from 'ava';
import { builtinKinds } from '../src/index.ts';

interface Facts {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  readonly subresources: readonly string[];
  readonly fieldSelectors: readonly string[];
  readonly columns: readonly [name: string, type: string, format: string, priority: number][];
  readonly allowCreateOnUpdate: boolean;
  readonly allowUnconditionalUpdate: boolean;
  readonly gcPolicy: string;
  readonly generation: string;
  readonly deleteReturns: string;
}

const file = new URL('../../test/fixtures/kind-facts.json', import.meta.url);
const facts = JSON.parse(readFileSync(file, 'utf8')) as Facts[];

/** Token kinds are defined with the kinds that need them. */
const later = new Set(['token']);

function definitionOf({ group, version, kind }: Facts): KindDefinition {
  const found = builtinKinds.find((known) => known.group === group && known.version === version && known.kind === kind);
  if (!found) throw new Error(`${kind} of ${group}/${version} is missing`);
  return found;
}

function generationOf(text: string): 'none' | 'spec' | 'spec-and-annotations' {
  if (!text.startsWith('1 on create')) return 'none';
  return text.includes('annotations') ? 'spec-and-annotations' : 'spec';
}

function propagationOf(text: string): 'none' | 'Orphan' | 'Background' {
  if (text.startsWith('unsupported')) return 'none';
  return text.endsWith('Orphan') ? 'Orphan' : 'Background';
}

test('there are no kinds beyond those with published facts', (t) => {
  t.is(builtinKinds.length, facts.length);
});

test('apps/v1 is preferred to its older versions', (t) => {
  const order = builtinKinds.filter(({ kind }) => kind === 'Deployment').map(({ apiVersion }) => apiVersion);
  t.deepEqual(order, ['apps/v1', 'apps/v1beta2', 'apps/v1beta1', 'extensions/v1beta1']);
});

for (const fact of facts) {
  test(`${fact.kind} of ${fact.group || 'core'}/${fact.version} matches the published facts`, (t) => {
    const kind = definitionOf(fact);
    t.is(kind.names.plural, fact.plural);
    t.is(kind.names.singular, fact.singular);
    t.deepEqual(kind.names.shortNames, fact.shortNames);
    t.deepEqual(kind.names.categories, fact.categories);
    t.is(kind.scope, fact.namespaced ? 'Namespaced' : 'Cluster');
    t.deepEqual(kind.verbs, fact.verbs);
    t.deepEqual(
      kind.subresources.map(({ name }) => name).sort(),
      fact.subresources.filter((name) => !later.has(name)).sort(),
    );
    t.deepEqual([...kind.selectableFields.keys()].sort(), [...fact.fieldSelectors].sort());
    t.deepEqual(
      kind.columns.map(({ name, type, format, priority }) => [name, type, format ?? '', priority]),
      fact.columns,
    );
    t.true(kind.protobuf);
    t.is(kind.strategy.allowCreateOnUpdate ?? false, fact.allowCreateOnUpdate);
    t.is(kind.strategy.allowUnconditionalUpdate ?? true, fact.allowUnconditionalUpdate);
    t.is(kind.strategy.generation ?? 'none', generationOf(fact.generation));
    t.is(kind.strategy.defaultPropagation ?? 'Background', propagationOf(fact.gcPolicy));
    t.is(kind.strategy.deleteReturnsObject ?? false, fact.deleteReturns !== 'Status');
  });

  test(`${fact.kind} of ${fact.group || 'core'}/${fact.version} has table cells and selectors for an empty object`, (t) => {
    const kind = definitionOf(fact);
    const empty = { metadata: { name: 'x' }, spec: { template: { spec: {} } } };
    for (const column of kind.columns) t.notThrows(() => column.value(empty, { now: new Date(0) }), column.name);
    for (const [path, value] of kind.selectableFields) t.is(typeof value(empty), 'string', path);
  });
}
