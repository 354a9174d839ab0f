/** Limits of a container or a pod. An absent field means "as it is" in an update and "no limit" at creation. */
export interface LinuxResources {
  /** Relative weight, 2..262144; 1024 is one CPU. */
  readonly cpuShares?: number;
  /** Microseconds of CPU time in every period; -1 takes the limit away. */
  readonly cpuQuotaUs?: number;
  readonly cpuPeriodUs?: number;
  /** CPUs that may be used, as a list like `0-2,7`. */
  readonly cpusetCpus?: string;
  readonly cpusetMems?: string;
  /** Bytes; -1 takes the limit away. */
  readonly memoryLimitBytes?: number;
  /** -1000 (never killed) to 1000 (killed first); clamped to what the machine permits. */
  readonly oomScoreAdjust?: number;
  /** Number of processes and threads; -1 takes the limit away. */
  readonly pidsLimit?: number;
}
