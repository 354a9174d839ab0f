/** What is held to its share of the machine. */
export type EnforcedShare = 'pods' | 'system-reserved' | 'cluster-reserved';

/**
 * Where pods and processes are placed among the cgroups of the machine. Groups are paths from the root of every
 * hierarchy.
 */
export interface CgroupConfig {
  /** Every pod has a group, below that of its quality of service. */
  readonly perQos: boolean;
  readonly driver: 'cgroupfs' | 'systemd';
  /** Undefined: the root with groups by quality of service, otherwise where the runtime puts pods. */
  readonly root: string | undefined;
  readonly enforce: readonly EnforcedShare[];
  /** '' = none. */
  readonly clusterReservedGroup: string;
  readonly systemReservedGroup: string;
  /**
   * Percentage of the memory that pods of better classes request, which the others cannot have; undefined = no such
   * limit.
   */
  readonly reservedMemoryPercent: number | undefined;
  /** '' = where it was started. */
  readonly agentGroup: string;
  /** '' = where it was started. */
  readonly runtimeGroup: string;
  /** '' = processes stay at the root. */
  readonly systemGroup: string;
  /** The first option that was given and cannot do without cgroups: a machine without them is an error then. */
  readonly askedBy: string | undefined;
}
