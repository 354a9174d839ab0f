/** Limits of a container or a pod. An absent field means no limit at creation, and no change in an update. */
export interface LinuxResources {
  /** Weight when cgroups compete for CPU time, 2..262144; Kubernetes sets 1024 for each requested CPU. */
  readonly cpuShares?: number;
  /** Microseconds of CPU time in every period; -1 removes the limit. */
  readonly cpuQuotaUs?: number;
  readonly cpuPeriodUs?: number;
  /** CPUs that may be used, as a list like `0-2,7`. */
  readonly cpusetCpus?: string;
  readonly cpusetMems?: string;
  /** Memory limit in bytes; -1 removes the limit. */
  readonly memoryLimitBytes?: number;
  /** Out-of-memory score adjustment, -1000 (never killed) to 1000 (killed first); limited to the permitted range. */
  readonly oomScoreAdjust?: number;
  /** Maximum number of processes and threads; -1 removes the limit. */
  readonly pidsLimit?: number;
}
