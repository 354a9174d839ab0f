// Entry point for storage adapters: the contract of a store, the adapter that opens one, and helpers that implement
// parts of the contract.

/** @public */
export { AdvanceWaiters, type ChangeLog, LogWatchStream, streamClosed, WatchHub } from './storage/log-watch-stream.ts';
/** @public */
export { type StorageAdapter, StoreToken } from './storage/storage-adapter.ts';
/** @public */
export {
  type Change,
  type Entry,
  type Key,
  type KeyRange,
  type ListChunk,
  prefixRange,
  type ReadOptions,
  type Revision,
  type Store,
  type StoreCapabilities,
  type StoreIdentity,
  type WatchBatch,
  type WatchStream,
  type WriteOp,
  type WriteResult,
} from './storage/store.ts';
/** @public */
export {
  Coalesced,
  checkKey,
  checkNotCompacted,
  checkWrite,
  compareKeys,
  maxKeyBytes,
  OrderedRange,
  orderedForm,
  throwIfAborted,
} from './storage/store-helpers.ts';
