import type { Store, StoreCapabilities } from '@keelson/core';
import type { ConformanceCase } from '../suite/conformance-suite.ts';

/** A store that a case may do anything with. */
export interface OpenedStore {
  readonly store: Store;
  /** Closes the store if it is still open and removes what it left behind. */
  dispose(): Promise<void>;
}

/** How the suite gets at an adapter. A missing hook turns the cases that need it into visible skips. */
export interface StoreHarness<O extends OpenedStore = OpenedStore> {
  /** Part of every test title. */
  readonly name: string;
  /** What the opened stores must declare; the first case compares. */
  readonly capabilities: StoreCapabilities;
  /** A store that is ready and has never been written to. */
  open(): Promise<O>;
  /** Moves the store's clock and resolves when everything due has been started. */
  advance?(opened: O, ms: number): Promise<void>;
  /** Closes the store and opens it on the same data; the argument must not be used any more. */
  reopen?(opened: O): Promise<O>;
  /** Loses the store as the death of its process would, and opens it on the same data. */
  killAndReopen?(opened: O): Promise<O>;
}

/** Hooks and capabilities that a case cannot do without. */
export type StoreRequirement = 'advance' | 'reopen' | 'killAndReopen' | 'denseRevisions' | 'durable';

/** What a running case has at hand. */
export interface StoreCaseContext {
  /** Opened for this case and empty. */
  readonly store: Store;
  /** What the harness says of the store. */
  readonly capabilities: StoreCapabilities;
  /** Decides every random choice; part of the failure message. */
  readonly seed: number;
  /** A second, unrelated store. */
  another(): Promise<Store>;
  advance(ms: number): Promise<void>;
  /** Closes and opens `store`; the store returned takes its place. */
  reopen(): Promise<Store>;
  killAndReopen(): Promise<Store>;
  log(message: string): void;
}

/** One statement about every store. */
export type StoreCase = ConformanceCase<StoreCaseContext, StoreRequirement>;

/** The requirements of a case that a harness does not meet. */
export function missingRequirements(harness: StoreHarness, storeCase: StoreCase): StoreRequirement[] {
  return (storeCase.requires ?? []).filter((need) => {
    if (need === 'denseRevisions' || need === 'durable') return !harness.capabilities[need];
    return harness[need] === undefined;
  });
}
