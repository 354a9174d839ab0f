/**
 * Periods that are no options of the command, in milliseconds: see docs/reference/agent-rules.md#periods-and-limits.
 * Tests shorten them.
 */
export interface AgentPeriods {
  readonly relist: number;
  /** In place of `relist` while the runtime tells of changes by itself. */
  readonly relistWithEvents: number;
  /** Looks for what nobody wants. */
  readonly housekeeping: number;
  /** Looks for unused images. */
  readonly imageGarbage: number;
  /** Looks for ended containers. */
  readonly containerGarbage: number;
  /** Between two checks of the sizes of logs. */
  readonly logRotation: number;
  /** Looks whether memory and disk run short. */
  readonly eviction: number;
  /** Looks at memory alone, with --experimental-kernel-memcg-notification. */
  readonly memoryWatch: number;
  readonly runtimeStatus: number;
  /** A runtime that was not ready for so long is down. */
  readonly runtimeDown: number;
  readonly statusBatch: number;
  /** How long a config map or secret that was read is good for. */
  readonly objectTtl: number;
  /** Looks whether chains of the packet filter are as they should be. */
  readonly utilityChains: number;
  /** Looks whether cgroups and what is in them are as they should be. */
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
