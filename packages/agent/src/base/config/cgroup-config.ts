/** Groups of processes whose share of the machine is enforced. */
export type EnforcedShare = 'pods' | 'system-reserved' | 'cluster-reserved';

/** Cgroups of pods and processes. A group is a path from the root of every hierarchy. */
export interface CgroupConfig {
  /** Every pod has a cgroup, below the cgroup of its quality-of-service class. */
  readonly perQos: boolean;
  readonly driver: 'cgroupfs' | 'systemd';
  /** Undefined: the root when `perQos` is set, otherwise the default of the runtime. */
  readonly root: string | undefined;
  readonly enforce: readonly EnforcedShare[];
  /** '' = none. */
  readonly clusterReservedGroup: string;
  readonly systemReservedGroup: string;
  /**
   * Percentage of the memory requests of a quality-of-service class that lower classes cannot use; undefined = no
   * limit.
   */
  readonly reservedMemoryPercent: number | undefined;
  /** '' = the cgroup in which the agent was started. */
  readonly agentGroup: string;
  /** '' = the cgroup in which the runtime was started. */
  readonly runtimeGroup: string;
  /** '' = processes of the root cgroup are not moved. */
  readonly systemGroup: string;
  /** The first given option that requires cgroups. With it, a machine without cgroups is an error. */
  readonly askedBy: string | undefined;
}
