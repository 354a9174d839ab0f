import assert from 'node:assert/strict';
import type { ClientCase } from './client/harness.ts';
import { clientCases } from './client-suite.ts';
import type { ResourceStorageCase } from './resource-storage/harness.ts';
import { resourceStorageCases } from './resource-storage-suite.ts';

/**
 * Cases of `ResourceStorage` whose outcome cannot depend on the adapter: they are about bytes, selectors, decisions,
 * events, shared work and injected faults above the `Store` contract, whose invariants every adapter proves by its
 * suite.
 */
const aboveStores = [
  'create.aborted',
  'create.empty-metadata',
  'create.hostile-names',
  'create.key-checked',
  'create.not-an-object',
  'create.outcome-unknown',
  'create.unavailable',
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
  'bookmark.wakes',
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
  'window.history-ahead',
  'window.history-fails',
  'window.many-states',
  'window.slow-watcher',
  'model.compare-narrow',
];

/** Cases of clients whose outcome depends on what the store does: conflicts, read points, history and large values. */
const ofStores = [
  'create.answers-the-stored-object',
  'create.any-text',
  'create.existing-name',
  'create.large-object',
  'update.replaces',
  'update.stale-version',
  'delete.and-create-again',
  'delete.collection',
  'read.at-least-a-version',
  'read.version-of-the-future',
  'list.exact-version',
  'list.exact-version-gone',
  'page.every-object-once',
  'page.one-state',
  'watch.begins-with-the-state',
  'watch.deletions-have-a-version',
  'watch.from-a-version',
  'watch.from-zero',
  'watch.history-gone',
  'watch.initial-events',
  'watch.large-events-and-scripts',
  'watch.many-at-once',
  'watch.resumes-without-gap',
  'watch.slow-consumer',
  'concurrency.counter',
  'concurrency.one-create-wins',
  'concurrency.patches-all-land',
  'concurrency.watchers-agree',
];

function select<C extends { readonly id: string }>(cases: readonly C[], ids: readonly string[]): readonly C[] {
  const selected = cases.filter(({ id }) => ids.includes(id));
  assert.equal(selected.length, ids.length, 'every listed case exists once');
  return selected;
}

const independent = select(resourceStorageCases, aboveStores);

/** The cases of {@link resourceStorageCases} whose outcome may depend on the storage adapter. */
export const storeDependentResourceStorageCases: readonly ResourceStorageCase[] = resourceStorageCases.filter(
  (resourceCase) => !independent.includes(resourceCase),
);

/** The cases of {@link clientCases} whose outcome may depend on the storage adapter. */
export const storeDependentClientCases: readonly ClientCase[] = select(clientCases, ofStores);
