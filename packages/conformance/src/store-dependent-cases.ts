import assert from 'node:assert/strict';
import type { ClientCase } from './client/harness.ts';
import { clientCases } from './client-suite.ts';
import type { ResourceStorageCase } from './resource-storage/harness.ts';
import { resourceStorageCases } from './resource-storage-suite.ts';

/**
 * Cases of `ResourceStorage` whose outcome depends on what the store does: writes of others, read points, history,
 * compaction and large values. The others are about code above the `Store` contract, whose invariants every adapter
 * proves by its suite.
 */
const storageCasesOfStores = [
  'create.large',
  'create.race',
  'update.contention',
  'delete.race',
  'get.exact',
  'get.others-write',
  'list.after-churn',
  'list.big-objects',
  'list.exact',
  'list.others-write',
  'list.stays-a-snapshot',
  'page.compacted',
  'page.snapshot',
  'page.quiet-kind',
  'bookmark.quiet-kind',
  'bookmark.resume',
  'watch.compacted',
  'watch.from-the-past',
  'watch.others-write',
  'cache.load-overtaken',
  'cache.load-under-writes',
  'window.exact-outside',
  'window.outlives-compaction',
  'window.restart',
  'model.compare',
  'model.informer',
  'model.linear',
];

/** Cases of clients whose outcome depends on what the store does: conflicts, read points, history and large values. */
const clientCasesOfStores = [
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

/** The cases of {@link resourceStorageCases} whose outcome may depend on the storage adapter. */
export const storeDependentResourceStorageCases: readonly ResourceStorageCase[] = select(
  resourceStorageCases,
  storageCasesOfStores,
);

/** The cases of {@link clientCases} whose outcome may depend on the storage adapter. */
export const storeDependentClientCases: readonly ClientCase[] = select(clientCases, clientCasesOfStores);
