import type { Metrics } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import type { PodQueries } from '../base/contracts/pod-queries.ts';
import { readMachineInfo } from '../machine/stats/machine-info.ts';
import type { UsageHistory } from '../machine/stats/usage-history.ts';
import { HttpProblem, sendJson, sendMetrics } from './http/request.ts';
import type { Route } from './http/route.ts';
import { usageMetrics } from './stats/usage-metrics.ts';

const podList = (items: readonly Pod[]) => ({ kind: 'PodList', apiVersion: 'v1', metadata: {}, items });

/** Routes for the desired pods and for the running pods. */
export function podRoutes(state: Pick<PodQueries, 'pods' | 'runningPods'>): Route[] {
  return [
    {
      first: 'pods',
      methods: ['GET'],
      readOnlyPort: true,
      serve: ({ response }) => sendJson(response, podList(state.pods())),
    },
    {
      first: 'runningpods',
      methods: ['GET'],
      debug: true,
      serve: async ({ response }) => sendJson(response, podList(await state.runningPods())),
    },
  ];
}

/** `/spec/`: the hardware of the host. */
export const specRoute: Route = {
  first: 'spec',
  methods: ['GET'],
  readOnlyPort: true,
  async serve({ response }) {
    sendJson(response, await readMachineInfo());
  },
};

/** `/metrics`: metrics of the agent; `/metrics/cadvisor`: usage of the host and its containers. */
export function metricsRoute(metrics: Metrics, history: Pick<UsageHistory, 'read'>): Route {
  return {
    first: 'metrics',
    methods: ['GET'],
    readOnlyPort: true,
    async serve({ path, response }) {
      const [, part, ...rest] = path;
      if (rest.length > 0 || (part !== undefined && part !== 'cadvisor'))
        throw new HttpProblem(404, '404 page not found');
      sendMetrics(response, part === undefined ? await metrics.text() : await usageMetrics(await history.read()));
    },
  };
}

/** `/configz`: the options in effect, including feature gates. */
export function configRoute(effective: Readonly<Record<string, unknown>>): Route {
  return {
    first: 'configz',
    methods: ['GET'],
    serve: ({ response }) => sendJson(response, { agentconfig: effective }),
  };
}
