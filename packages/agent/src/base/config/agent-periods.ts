/**
 * Periods that no option sets, in milliseconds: see docs/reference/agent-rules.md#periods-and-limits. Tests shorten
 * them.
 */
export interface AgentPeriods {
  readonly relist: number;
  /** Replaces `relist` while the runtime sends events. */
  readonly relistWithEvents: number;
  /** Removal of files, cgroups and processes that belong to no pod. */
  readonly housekeeping: number;
  /** Collection of unused images. */
  readonly imageGarbage: number;
  /** Collection of ended containers. */
  readonly containerGarbage: number;
  /** Checks of the sizes of logs. */
  readonly logRotation: number;
  /** Observation of memory and disk. */
  readonly eviction: number;
  /** Observation of memory alone, with --experimental-kernel-memcg-notification. */
  readonly memoryWatch: number;
  readonly runtimeStatus: number;
  /** A runtime that was not ready for this time is down. */
  readonly runtimeDown: number;
  readonly statusBatch: number;
  /** Lifetime of a config map or secret in the cache. */
  readonly objectTtl: number;
  /** Reconciliation of the chains of the packet filter. */
  readonly utilityChains: number;
  /** Reconciliation of cgroups and of the processes in them. */
  readonly cgroups: number;
}

export const defaultPeriods: AgentPeriods = {
  relist: 1_000,
  relistWithEvents: 5_000,
  housekeeping: 2_000,
  imageGarbage: 300_000,
  containerGarbage: 60_000,
  logRotation: 10_000,
  eviction: 10_000,
  memoryWatch: 1_000,
  runtimeStatus: 5_000,
  runtimeDown: 30_000,
  statusBatch: 10_000,
  objectTtl: 60_000,
  utilityChains: 60_000,
  cgroups: 60_000,
};
