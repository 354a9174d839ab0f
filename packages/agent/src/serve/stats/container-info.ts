import type { UsageStats } from '../../base/contracts/pod-queries.ts';
import type { UsageSeries, UsageState } from '../../machine/stats/usage-history.ts';

/** Which samples somebody wants; of those in the time asked for the last `count`. */
export interface SampleRange {
  readonly count: number;
  /** Epoch milliseconds, both ends included. */
  readonly startMs: number;
  readonly endMs: number;
}

/** A container, a pod or the machine as cAdvisor's API v1 shows it; what is not measured here is left out. */
export interface ContainerInfo {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly subcontainers: readonly { readonly name: string }[];
  readonly spec: { readonly creation_time: string; readonly has_cpu: boolean; readonly has_memory: boolean };
  readonly stats: readonly object[];
}

const instant = (ms: number): string => new Date(ms).toISOString();

function shownSample({ timeMs, cpuNanoSeconds, memoryWorkingSetBytes, memoryUsageBytes, memoryRssBytes }: UsageStats) {
  return {
    timestamp: instant(timeMs),
    cpu: { usage: { total: cpuNanoSeconds } },
    memory: {
      ...(memoryUsageBytes === undefined ? {} : { usage: memoryUsageBytes }),
      ...(memoryRssBytes === undefined ? {} : { rss: memoryRssBytes }),
      working_set: memoryWorkingSetBytes,
    },
  };
}

function samplesIn(samples: readonly UsageStats[], { count, startMs, endMs }: SampleRange): object[] {
  if (count === 0) return [];
  return samples
    .filter(({ timeMs }) => timeMs >= startMs && timeMs <= endMs)
    .slice(-count)
    .map(shownSample);
}

const measured = (startTimeMs: number) => ({ creation_time: instant(startTimeMs), has_cpu: true, has_memory: true });

/** The name of a container below its pod's; those of cgroups are the runtime's affair. */
export function containerPath({ uid, container }: UsageSeries['of'] & {}): string {
  return `/pod${uid}/${container}`;
}

/** One container. */
export function containerInfo({ of, startTimeMs, samples }: UsageSeries, range: SampleRange): ContainerInfo {
  if (of === undefined) throw new Error('the machine is no container');
  const { namespace, pod, uid, container } = of;
  return {
    name: containerPath(of),
    aliases: [`${namespace}/${pod}/${container}`],
    labels: {
      'io.kubernetes.container.name': container,
      'io.kubernetes.pod.name': pod,
      'io.kubernetes.pod.namespace': namespace,
      'io.kubernetes.pod.uid': uid,
    },
    subcontainers: [],
    spec: measured(startTimeMs),
    stats: samplesIn(samples, range),
  };
}

/**
 * Everything there is, parents first: `/` is the machine, `/podUID` a pod, which is measured by its containers alone.
 */
export function containerTree(
  { machine, containers }: UsageState,
  range: SampleRange,
): ReadonlyMap<string, ContainerInfo> {
  const pods = new Map<string, UsageSeries[]>();
  for (const one of containers) {
    const name = `/pod${one.of?.uid}`;
    pods.set(name, [...(pods.get(name) ?? []), one]);
  }
  const root: ContainerInfo = {
    name: '/',
    subcontainers: [...pods.keys()].map((name) => ({ name })),
    spec: measured(machine.startTimeMs),
    stats: samplesIn(machine.samples, range),
  };
  const tree = new Map([['/', root]]);
  for (const [name, members] of pods) {
    const shown = members.map((one) => containerInfo(one, range));
    tree.set(name, {
      name,
      subcontainers: shown.map((one) => ({ name: one.name })),
      spec: {
        creation_time: instant(Math.min(...members.map(({ startTimeMs }) => startTimeMs))),
        has_cpu: false,
        has_memory: false,
      },
      stats: [],
    });
    for (const one of shown) tree.set(one.name, one);
  }
  return tree;
}

/** A container and all below it; empty when there is none of this name. */
export function subtree(tree: ReadonlyMap<string, ContainerInfo>, name: string): ContainerInfo[] {
  const prefix = name === '/' ? '/' : `${name}/`;
  return [...tree.values()].filter((one) => one.name === name || one.name.startsWith(prefix));
}
