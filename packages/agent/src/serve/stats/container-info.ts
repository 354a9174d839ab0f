import type { UsageStats } from '../../base/contracts/pod-queries.ts';
import type { UsageSeries, UsageState } from '../../machine/stats/usage-history.ts';

/** The requested samples: the last `count` of those in the time range. */
export interface SampleRange {
  readonly count: number;
  /** Epoch milliseconds, both ends included. */
  readonly startMs: number;
  readonly endMs: number;
}

/** A container, a pod or the host in the form of cAdvisor's API v1, without fields that are not measured. */
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

/** The name of a container below the name of its pod; names of cgroups depend on the runtime and are not used. */
export function containerPath({ uid, container }: UsageSeries['of'] & {}): string {
  return `/pod${uid}/${container}`;
}

/** One container. */
export function containerInfo({ of, startTimeMs, samples }: UsageSeries, range: SampleRange): ContainerInfo {
  if (of === undefined) throw new Error('the host is not a container');
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
 * All containers, parents first: `/` is the host, `/podUID` a pod, whose usage is the sum of its containers.
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

/** A container and all below it; empty when the name does not exist. */
export function subtree(tree: ReadonlyMap<string, ContainerInfo>, name: string): ContainerInfo[] {
  const prefix = name === '/' ? '/' : `${name}/`;
  return [...tree.values()].filter((one) => one.name === name || one.name.startsWith(prefix));
}
