import {
  clientCases,
  resourceStorageCases,
  storeDependentClientCases,
  storeDependentResourceStorageCases,
} from '@keelson/conformance';
import test, { type TestFn } from 'ava';
import type { KubectlContext } from '../../src/kubectl-cluster.ts';
import { registerDeleteScenarios } from '../../src/scenarios/kubectl-delete.ts';
import { registerReadScenarios } from '../../src/scenarios/kubectl-read.ts';
import { registerWriteScenarios } from '../../src/scenarios/kubectl-write.ts';
import { allResources, fewResources } from '../../src/scenarios/scope.ts';

function titlesOf(changedResources: readonly string[]): string[] {
  const titles: string[] = [];
  const record = ((title: string) => titles.push(title)) as unknown as TestFn<KubectlContext>;
  registerReadScenarios(record);
  registerWriteScenarios(record, changedResources);
  registerDeleteScenarios(record, changedResources);
  return titles;
}

const idsWithout = (all: readonly { readonly id: string }[], normal: readonly { readonly id: string }[]) =>
  all
    .filter((one) => !normal.includes(one))
    .map(({ id }) => id)
    .sort();

test('KEELSON_TEST_FULL adds exactly these scenarios of kubectl on LMDB', (t) => {
  const normal = titlesOf(fewResources);
  const resources = [
    'events',
    'secrets',
    'services',
    'daemonsets.extensions',
    'ingresses.extensions',
    'replicasets.extensions',
  ];
  t.deepEqual(
    titlesOf(allResources).filter((title) => !normal.includes(title)),
    [
      ...resources.map((resource) => `create, apply and replace work on ${resource}`),
      ...resources.map((resource) => `patch, label, annotate and edit work on ${resource}`),
      ...resources.map((resource) => `delete removes one of ${resource} and waits until it is gone`),
    ],
  );
});

test('KEELSON_TEST_FULL adds exactly these cases of ResourceStorage on etcd and PostgreSQL, beside all without the watch cache', (t) => {
  t.deepEqual(idsWithout(resourceStorageCases, storeDependentResourceStorageCases), [
    'bookmark.wakes',
    'cache.broken-stream',
    'cache.coalesced-probes',
    'cache.compacted-feed',
    'cache.compacted-feed-behind-own-writes',
    'cache.compacted-feed-spares-the-unharmed',
    'cache.epoch',
    'cache.lagging-feed',
    'cache.probe-after-request',
    'cache.reads-from-memory',
    'cache.shared-object',
    'cache.unreachable-store',
    'create.aborted',
    'create.empty-metadata',
    'create.hostile-names',
    'create.key-checked',
    'create.not-an-object',
    'create.outcome-unknown',
    'create.unavailable',
    'delete.corrupt',
    'delete.same-final-state',
    'delete.stale-suggestion',
    'get.aborted',
    'get.corrupt',
    'get.own-copy',
    'list.any-grows',
    'list.bytes',
    'list.corrupt',
    'list.empty',
    'list.exact-selector',
    'list.namespace-counts',
    'list.one-key',
    'list.representation',
    'list.same-value-again',
    'list.selector',
    'model.compare-narrow',
    'page.namespace',
    'page.no-match',
    'page.rare',
    'page.remaining',
    'page.selector',
    'state.any',
    'state.bookmark-form',
    'state.end-bookmark',
    'state.fresh',
    'state.name',
    'state.namespace',
    'state.position',
    'state.selector',
    'update.aborted',
    'update.error-final',
    'update.in-turn',
    'update.keep',
    'update.no-op',
    'update.no-op-length',
    'update.not-an-object',
    'update.outcome-unknown',
    'update.stale-acceptance',
    'update.stale-error',
    'update.stale-missing',
    'update.stale-no-op',
    'watch.abort',
    'watch.callback-reader',
    'watch.close',
    'watch.close-waiting-iteration',
    'watch.cluster-scoped',
    'watch.corrupt',
    'watch.frames',
    'watch.idle-neighbours',
    'watch.iterate',
    'watch.many-selectors',
    'watch.name',
    'watch.namespace',
    'watch.readable',
    'watch.selector-transitions',
    'watch.slow-reader',
    'watch.stop',
    'watch.types',
    'window.history-ahead',
    'window.history-fails',
    'window.many-states',
    'window.slow-watcher',
  ]);
});

test('KEELSON_TEST_FULL adds exactly these cases of clients on LMDB', (t) => {
  t.deepEqual(idsWithout(clientCases, storeDependentClientCases), [
    'create.bad-name',
    'create.cluster-scoped',
    'create.dry-run',
    'create.generates-names',
    'create.ignores-what-only-the-server-says',
    'create.invalid-object',
    'create.missing-namespace',
    'create.objects-belong-to-the-caller',
    'create.refuses-another-namespace',
    'create.strict-field-validation',
    'create.takes-the-namespace-of-the-object',
    'create.warnings',
    'create.warns-of-unknown-fields',
    'create.wrong-type',
    'delete.answers-with-the-uid',
    'delete.contradicting-options',
    'delete.dry-run',
    'delete.finalizers-hold',
    'delete.preconditions',
    'delete.propagation',
    'discovery.other-versions',
    'discovery.rows',
    'discovery.shared-storage',
    'list.empty',
    'list.envelope',
    'list.field-selectors',
    'list.label-selectors',
    'list.one-or-all-namespaces',
    'page.bad-token',
    'page.limit-larger-than-the-list',
    'page.with-selector',
    'patch.apply',
    'patch.apply-conflict',
    'patch.dry-run',
    'patch.json',
    'patch.json-that-does-not-apply',
    'patch.merge',
    'patch.missing-object',
    'patch.precondition',
    'patch.strategic',
    'patch.strict-field-validation',
    'read.empty-name',
    'read.metadata-only',
    'read.missing-object',
    'read.missing-resource',
    'read.names-that-look-like-paths',
    'read.typed-and-by-name',
    'subresource.action',
    'subresource.missing',
    'subresource.projection',
    'subresource.projection-refuses',
    'subresource.status',
    'subresource.wrong-method',
    'update.dry-run',
    'update.in-the-objects-namespace',
    'update.invalid',
    'update.leaves-the-status',
    'update.missing-object',
    'update.nothing-changed',
    'update.other-uid',
    'update.without-version',
    'watch.abort',
    'watch.field-selector',
    'watch.label-selector',
    'watch.leaving-while-waiting',
    'watch.one-or-all-namespaces',
    'watch.refusals',
    'watch.time-out',
    'watch.twice',
  ]);
});
