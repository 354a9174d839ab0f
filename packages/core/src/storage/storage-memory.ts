import type { Clock } from '../runtime/clock.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { ByteBudget } from './byte-budget.ts';
import { UsageBudget } from './usage-budget.ts';

/**
 * Bounds, in bytes, on the memory for data that is derived from stored objects and kept only to save repeated work.
 * Each bound is for all stores and kinds of a plane together.
 */
export interface StorageBudgets {
  /** Objects in other forms than the stored one, such as protobuf and table rows. Default 32 MiB. */
  readonly derivedFormsBytes: number;
  /** Frames of watch events, each shared by the watchers that receive it. Default 16 MiB. */
  readonly watchFramesBytes: number;
  /**
   * Contiguous copies of neighbouring objects for lists, where the store has the objects in memory itself. They are
   * released when no list has used them for two to four seconds. Default 64 MiB.
   */
  readonly listBlocksBytes: number;
  /**
   * Positions of objects by the value of a label or field, for lists that select one value, and what selectors select
   * in parts of a kind. They are released when no list has used them for ten to twenty seconds. Default 64 MiB.
   */
  readonly selectorIndexesBytes: number;
}

const mebibyte = 1024 * 1024;

export const defaultStorageBudgets: StorageBudgets = {
  derivedFormsBytes: 32 * mebibyte,
  watchFramesBytes: 16 * mebibyte,
  listBlocksBytes: 64 * mebibyte,
  selectorIndexesBytes: 64 * mebibyte,
};

/** All budgets of `defaults`, with the bounds that are given. Other properties of `given` are left out. */
export function pickBudgets<T extends object>(defaults: T, given: Partial<T> | undefined): T {
  const budgets = { ...defaults };
  for (const key of Object.keys(defaults) as (keyof T)[]) budgets[key] = given?.[key] ?? defaults[key];
  return budgets;
}

/** Shows the bounds of budgets in the metrics. */
export function reportBudgets(metrics: Metrics, budgets: object): void {
  const gauge = metrics.gauge({
    name: 'keelson_memory_budget_bytes',
    help: 'Bounds on the memory for data that is kept to save repeated work',
    labels: ['budget'],
  });
  for (const [key, bytes] of Object.entries(budgets)) gauge.set(Number(bytes), { budget: key.replace(/Bytes$/, '') });
}

const listBlocksIdleMs = 2_000;
const selectorIndexesIdleMs = 10_000;

/** The memory budgets of one plane, each with the data that it has admitted. */
export class StorageMemory {
  readonly derivedForms: ByteBudget;
  readonly watchFrames: ByteBudget;
  readonly listBlocks: UsageBudget;
  readonly selectorIndexes: UsageBudget;

  constructor(clock: Clock, budgets: Partial<StorageBudgets> = {}, metrics?: Metrics) {
    const limits = pickBudgets(defaultStorageBudgets, budgets);
    if (metrics !== undefined) reportBudgets(metrics, limits);
    this.derivedForms = new ByteBudget(limits.derivedFormsBytes);
    this.watchFrames = new ByteBudget(limits.watchFramesBytes);
    this.listBlocks = new UsageBudget(clock, limits.listBlocksBytes, listBlocksIdleMs);
    this.selectorIndexes = new UsageBudget(clock, limits.selectorIndexesBytes, selectorIndexesIdleMs);
  }
}

/** Where stored objects come from. */
export interface ObjectSource {
  /** Whether values belong to the store: see {@link StoreCapabilities.sharedValues}. */
  readonly sharedValues: boolean;
  /** Budgets for data derived from the objects. Absent: none of it is kept. */
  readonly memory?: StorageMemory;
}
