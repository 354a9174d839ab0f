import assert from 'node:assert/strict';
import type { ClientCase } from './client/harness.ts';
import { clientCases } from './client-suite.ts';
import type { ResourceStorageCase } from './resource-storage/harness.ts';
import { resourceStorageCases } from './resource-storage-suite.ts';

/**
 * Cases of `ResourceStorage` whose outcome cannot depend on the adapter: they are about bytes, selectors, decisions,
 * events and shared work above the `Store` contract, whose invariants every adapter proves by the suite of stores.
 */
const aboveStores = [
  'create.aborted',
  'create.empty-metadata',
  'create.key-checked',
  'create.not-an-object',
  'update.aborted',
  'update.error-final',
  'update.no-op-length',
  'update.not-an-object',
  'delete.corrupt',
  'delete.same-final-state',
  'get.aborted',
  'get.corrupt',
  'get.own-copy',
  'list.bytes',
  'list.corrupt',
  'list.namespace-counts',
  'list.one-key',
  'list.representation',
  'list.same-value-again',
  'page.no-match',
  'page.rare',
  'page.remaining',
  'state.bookmark-form',
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
  'cache.coalesced-probes',
  'cache.probe-after-request',
  'cache.reads-from-memory',
  'cache.shared-object',
  'window.many-states',
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
