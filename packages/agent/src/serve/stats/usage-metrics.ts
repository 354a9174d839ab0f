import { cpus, totalmem } from 'node:os';
import type { UsageState } from '../../machine/stats/usage-history.ts';
import { containerPath } from './container-info.ts';
import { createTextMetrics } from './text-metrics.ts';

const labels = ['container', 'id', 'namespace', 'pod'] as const;
const nanosPerSecond = 1e9;

/**
 * The current usage of the host and its containers under the metric names of cAdvisor, in the text format of
 * Prometheus.
 */
export function usageMetrics({ machine, containers, complete }: UsageState): Promise<string> {
  const metrics = createTextMetrics();
  const cpu = metrics.counter({
    name: 'container_cpu_usage_seconds_total',
    help: 'CPU time consumed, in seconds.',
    labels,
  });
  const gauge = (name: string, help: string) => metrics.gauge({ name, help, labels });
  const workingSet = gauge('container_memory_working_set_bytes', 'Memory in use that cannot be given up, in bytes.');
  const usage = gauge('container_memory_usage_bytes', 'Memory in use, in bytes.');
  const rss = gauge('container_memory_rss', 'Memory of processes, in bytes.');
  const start = gauge('container_start_time_seconds', 'When it started, in seconds since 1970.');
  const seen = gauge('container_last_seen', 'When it was measured, in seconds since 1970.');
  for (const { of, startTimeMs, samples } of [machine, ...containers]) {
    const sample = samples.at(-1);
    if (sample === undefined) continue;
    const values = {
      ...{ container: of?.container ?? '', namespace: of?.namespace ?? '', pod: of?.pod ?? '' },
      id: of === undefined ? '/' : containerPath(of),
    };
    cpu.add(sample.cpuNanoSeconds / nanosPerSecond, values);
    workingSet.set(sample.memoryWorkingSetBytes, values);
    if (sample.memoryUsageBytes !== undefined) usage.set(sample.memoryUsageBytes, values);
    if (sample.memoryRssBytes !== undefined) rss.set(sample.memoryRssBytes, values);
    start.set(startTimeMs / 1000, values);
    seen.set(sample.timeMs / 1000, values);
  }
  metrics
    .gauge({ name: 'container_scrape_error', help: '1 when containers could not be measured.' })
    .set(complete ? 0 : 1);
  metrics.gauge({ name: 'machine_cpu_cores', help: 'CPUs of the machine.' }).set(cpus().length);
  metrics.gauge({ name: 'machine_memory_bytes', help: 'Memory of the machine, in bytes.' }).set(totalmem());
  return metrics.text();
}
