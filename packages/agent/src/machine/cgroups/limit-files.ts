/** What a cgroup may use. Absent: as it is. */
export interface CgroupLimits {
  /** Relative weight, 2..262144; 1024 is one CPU. */
  readonly cpuShares?: number;
  /** Microseconds of CPU time in every period of `cpuPeriodUs`; -1 = without limit. */
  readonly cpuQuotaUs?: number;
  /** Default 100 000. */
  readonly cpuPeriodUs?: number;
  /** Bytes; -1 = without limit. */
  readonly memoryBytes?: number;
}

/** A file of a controller, and what is written to it. */
export type LimitFile = readonly [controller: 'cpu' | 'memory', file: string, text: string];

const defaultPeriodUs = 100_000;
const leastShares = 2;
const mostShares = 262_144;

/** In the words of version 1, in the order in which they are written: a quota is measured by its period. */
export function* version1Limits({
  cpuShares,
  cpuQuotaUs,
  cpuPeriodUs,
  memoryBytes,
}: CgroupLimits): Iterable<LimitFile> {
  if (cpuShares !== undefined) yield ['cpu', 'cpu.shares', String(cpuShares)];
  if (cpuPeriodUs !== undefined) yield ['cpu', 'cpu.cfs_period_us', String(cpuPeriodUs)];
  if (cpuQuotaUs !== undefined) yield ['cpu', 'cpu.cfs_quota_us', String(cpuQuotaUs)];
  if (memoryBytes !== undefined) yield ['memory', 'memory.limit_in_bytes', String(memoryBytes)];
}

/** In the words of version 2. */
export function* version2Limits({
  cpuShares,
  cpuQuotaUs,
  cpuPeriodUs = defaultPeriodUs,
  memoryBytes,
}: CgroupLimits): Iterable<LimitFile> {
  if (cpuShares !== undefined) yield ['cpu', 'cpu.weight', String(weightOf(cpuShares))];
  if (cpuQuotaUs !== undefined) yield ['cpu', 'cpu.max', `${cpuQuotaUs < 0 ? 'max' : cpuQuotaUs} ${cpuPeriodUs}`];
  if (memoryBytes !== undefined) yield ['memory', 'memory.max', memoryBytes < 0 ? 'max' : String(memoryBytes)];
}

/** The mapping that runtimes use too: 2..262144 to 1..10000. */
export function weightOf(shares: number): number {
  const clamped = Math.min(Math.max(shares, leastShares), mostShares);
  return 1 + Math.trunc(((clamped - leastShares) * 9_999) / (mostShares - leastShares));
}
