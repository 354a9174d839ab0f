import { readFile } from 'node:fs/promises';
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
    'bookmark.order',
    'bookmark.wakes',
    'cache.broken-stream',
    'cache.coalesced-probes',
    'cache.compacted-feed',
    'cache.compacted-feed-behind-own-writes',
    'cache.compacted-feed-spares-the-unharmed',
    'cache.epoch',
    'cache.lagging-feed',
    'cache.own-writes',
    'cache.probe-after-request',
    'cache.reads-from-memory',
    'cache.shared-object',
    'cache.start-overtaken',
    'cache.unreachable-store',
    'create.aborted',
    'create.empty-metadata',
    'create.exists',
    'create.hostile-names',
    'create.key-checked',
    'create.not-an-object',
    'create.outcome-unknown',
    'create.read-your-write',
    'create.revision',
    'create.ttl',
    'create.unavailable',
    'delete.conflict',
    'delete.corrupt',
    'delete.final-state',
    'delete.last-state',
    'delete.missing',
    'delete.same-final-state',
    'delete.stale-suggestion',
    'get.aborted',
    'get.corrupt',
    'get.create-revision',
    'get.future',
    'get.kinds-apart',
    'get.missing',
    'get.not-older-than',
    'get.own-copy',
    'get.waits',
    'list.any-grows',
    'list.bytes',
    'list.corrupt',
    'list.empty',
    'list.exact-between',
    'list.exact-selector',
    'list.global-revision',
    'list.key-order',
    'list.namespace-counts',
    'list.not-older-than',
    'list.one-key',
    'list.prefix-siblings',
    'list.representation',
    'list.same-value-again',
    'list.selector',
    'model.compare-narrow',
    'page.all',
    'page.at-latest',
    'page.exact',
    'page.last-key-deleted',
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
    'state.not-older-than',
    'state.position',
    'state.revisions',
    'state.selector',
    'state.slow',
    'state.then-live',
    'update.aborted',
    'update.conflict',
    'update.conflict-created',
    'update.conflict-deleted',
    'update.create',
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
    'update.ttl',
    'update.write',
    'watch.abort',
    'watch.callback-reader',
    'watch.chain',
    'watch.close',
    'watch.close-waiting-iteration',
    'watch.cluster-scoped',
    'watch.corrupt',
    'watch.frames',
    'watch.future-start',
    'watch.idle-neighbours',
    'watch.iterate',
    'watch.many-selectors',
    'watch.name',
    'watch.namespace',
    'watch.readable',
    'watch.selector-transitions',
    'watch.slow-reader',
    'watch.stop',
    'watch.store-closed',
    'watch.types',
    'window.history-ahead',
    'window.history-fails',
    'window.history-start',
    'window.many-states',
    'window.slow-watcher',
    'window.slow-watcher-compacted',
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

test('the nightly run has every file that npm test leaves to it', async (t) => {
  const read = (name: string) => readFile(new URL(`../../../../${name}`, import.meta.url), 'utf8');
  const [, list = ''] = /const nightly = \[(.*?)\];/s.exec(await read('ava.config.js')) ?? [];
  const left = [...list.matchAll(/'(.+?)'/g)].map(([, file = '']) => file);
  t.true(left.length > 0);
  const { nightly } = (JSON.parse(await read('package.json')) as { scripts: { nightly: string } }).scripts;
  const inFull = /KEELSON_TEST_FULL=1 ava (.*?) &&/.exec(nightly)?.[1]?.match(/[^ ']+\.test\.js/g) ?? [];
  // The form of patterns that the script uses: `*` and `{one,other}`.
  const patterns = inFull.map(
    (pattern) =>
      new RegExp(
        `^${pattern.replaceAll('*', '[^/]*').replace(/\{(.*?)\}/g, (_, names: string) => `(${names.replaceAll(',', '|')})`)}$`,
      ),
  );
  t.deepEqual(
    left.filter((file) => !patterns.some((pattern) => pattern.test(file))),
    [],
  );
});
