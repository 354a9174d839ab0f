import { percentile } from '../measure/statistics.ts';

/** What a run of equal operations gave. */
export interface Throughput {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
}

/** Keeps `count` operations under way for that long; each is called with a number of its own. */
export async function keepInFlight(
  count: number,
  durationMs: number,
  operation: (number: number) => Promise<unknown>,
): Promise<Throughput> {
  const latencies: number[] = [];
  let next = 0;
  const begin = performance.now();
  const end = begin + durationMs;
  const one = async (): Promise<void> => {
    for (let at = performance.now(); at < end; ) {
      await operation(next++);
      const now = performance.now();
      latencies.push(now - at);
      at = now;
    }
  };
  await Promise.all(Array.from({ length: count }, one));
  const seconds = (performance.now() - begin) / 1000;
  return {
    perSecond: latencies.length / seconds,
    p50Ms: percentile(latencies, 0.5),
    p90Ms: percentile(latencies, 0.9),
    p99Ms: percentile(latencies, 0.99),
  };
}
