import type { Store, StoreCapabilities } from '@keelson/core/storage-adapter';
import type { ConformanceCase } from '../suite/conformance-suite.ts';

/** A store for one case. */
export interface OpenedStore {
  readonly store: Store;
  /** Closes the store if it is still open and removes its data. */
  dispose(): Promise<void>;
}

/** Access of the suite to an adapter. Cases that need a missing hook are registered as skipped. */
export interface StoreHarness<O extends OpenedStore = OpenedStore> {
  /** Part of every test title. */
  readonly name: string;
  /** Capabilities that opened stores must declare; the first case compares them. */
  readonly capabilities: StoreCapabilities;
  /** Opens a store that is ready and has never been written. */
  open(): Promise<O>;
  /** Advances the clock of the store and resolves when all due work has been started. */
  advance?(opened: O, ms: number): Promise<void>;
  /** Closes the store and opens it on the same data; the argument must not be used afterwards. */
  reopen?(opened: O): Promise<O>;
  /** Kills the store like the death of its process, and opens another on the same data. */
  killAndReopen?(opened: O): Promise<O>;
}

/** Hooks and capabilities that a case can require. */
export type StoreRequirement = 'advance' | 'reopen' | 'killAndReopen' | 'denseRevisions' | 'durable';

/** The context of a running case. */
export interface StoreCaseContext {
  /** An empty store, opened for this case. */
  readonly store: Store;
  /** Capabilities that the harness declares. */
  readonly capabilities: StoreCapabilities;
  /** Seed of all random choices; part of the message of a failure. */
  readonly seed: number;
  /** Opens a second, unrelated store. */
  another(): Promise<Store>;
  advance(ms: number): Promise<void>;
  /** Closes `store` and opens it again; the returned store replaces it. */
  reopen(): Promise<Store>;
  killAndReopen(): Promise<Store>;
  log(message: string): void;
}

/** One statement about every store. */
export type StoreCase = ConformanceCase<StoreCaseContext, StoreRequirement>;

/** Returns the requirements of a case that a harness does not meet. */
export function missingRequirements(harness: StoreHarness, storeCase: StoreCase): StoreRequirement[] {
  return (storeCase.requires ?? []).filter((need) => {
    if (need === 'denseRevisions' || need === 'durable') return !harness.capabilities[need];
    return harness[need] === undefined;
  });
}
