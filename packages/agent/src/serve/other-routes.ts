import type { Metrics } from '@keelson/core';
import type { UsageHistory } from '../machine/stats/usage-history.ts';
import { HttpProblem, sendJson, sendMetrics } from './http/request.ts';
import type { Route } from './http/route.ts';
import { usageMetrics } from './stats/usage-metrics.ts';

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
