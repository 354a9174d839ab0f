import { uptime } from 'node:os';
import type { Clock } from '@keelson/core/runtime';
import type { PodQueries, UsageStats } from '../base/contracts/pod-queries.ts';
import { nodeUsage } from '../machine/stats/node-usage.ts';
import type { UsageHistory } from '../machine/stats/usage-history.ts';
import { sendJson } from './http/request.ts';
import type { Route } from './http/route.ts';
import { containerStats } from './stats/container-stats.ts';

/** Minimum distance of the samples of a rate. */
const leastIntervalMs = 100;

interface Sample {
  readonly timeMs: number;
  readonly nanos: number;
  readonly rate: number | undefined;
}

/** Computes rates from cumulative CPU times and the samples of the previous request. */
class CpuRates {
  #before: ReadonlyMap<string, Sample> = new Map();

  /** The samples of one answer; other samples are removed afterwards. */
  round(): { rateOf(key: string, usage: UsageStats): number | undefined; done(): void } {
    const now = new Map<string, Sample>();
    return {
      rateOf: (key, { timeMs, cpuNanoSeconds: nanos }) => {
        const before = this.#before.get(key);
        if (before !== undefined && timeMs - before.timeMs < leastIntervalMs) {
          now.set(key, before);
          return before.rate;
        }
        // A counter that decreased belongs to a new instance.
        const rate =
          before === undefined || nanos < before.nanos
            ? undefined
            : Math.round((nanos - before.nanos) / ((timeMs - before.timeMs) / 1000));
        now.set(key, { timeMs, nanos, rate });
        return rate;
      },
      done: () => {
        this.#before = now;
      },
    };
  }
}

const instant = (ms: number): string => new Date(ms).toISOString();

function shown(usage: UsageStats, rate: number | undefined) {
  const time = instant(usage.timeMs);
  return {
    cpu: { time, ...(rate === undefined ? {} : { usageNanoCores: rate }), usageCoreNanoSeconds: usage.cpuNanoSeconds },
    memory: {
      time,
      ...(usage.memoryUsageBytes === undefined ? {} : { usageBytes: usage.memoryUsageBytes }),
      workingSetBytes: usage.memoryWorkingSetBytes,
      ...(usage.memoryRssBytes === undefined ? {} : { rssBytes: usage.memoryRssBytes }),
    },
  };
}

export interface StatsRouteOptions {
  readonly state: Pick<PodQueries, 'usage' | 'pods'>;
  readonly history: Pick<UsageHistory, 'read'>;
  readonly nodeName: string;
  readonly clock: Clock;
}

/**
 * `/stats/summary`: CPU and memory of the node and of each container, and the space of volumes; and what stands by
 * containers below `/stats`.
 */
export function statsRoute({ state, history, nodeName, clock }: StatsRouteOptions): Route {
  const rates = new CpuRates();
  const ofContainers = containerStats({ state, history });
  return {
    first: 'stats',
    methods: ['GET', 'POST'],
    readOnlyPort: true,
    async serve(request) {
      const { path, response } = request;
      if (path.length !== 2 || path[1] !== 'summary') return ofContainers(request);
      const nowMs = clock.now();
      const [node, pods] = await Promise.all([nodeUsage(nowMs), state.usage()]);
      const round = rates.round();
      const answer = {
        node: { nodeName, startTime: instant(nowMs - uptime() * 1000), ...shown(node, round.rateOf('', node)) },
        pods: pods.map(({ namespace, name, uid, startTimeMs, containers, volumes }) => ({
          podRef: { name, namespace, uid },
          startTime: instant(startTimeMs),
          containers: containers.map((usage) => ({
            name: usage.name,
            startTime: instant(usage.startTimeMs),
            ...shown(usage, round.rateOf(`${uid}/${usage.name}`, usage)),
          })),
          ...(volumes?.length
            ? { volume: volumes.map(({ timeMs, ...sizes }) => ({ time: instant(timeMs), ...sizes })) }
            : {}),
        })),
      };
      round.done();
      sendJson(response, answer);
    },
  };
}
