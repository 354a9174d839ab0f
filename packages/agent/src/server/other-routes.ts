import type { Metrics } from '@keelson/core';
import { HttpProblem, sendJson } from './request.ts';
import type { Route } from './route.ts';

/** `/metrics`: what the agent counts, for Prometheus. */
export function metricsRoute(metrics: Metrics): Route {
  return {
    first: 'metrics',
    methods: ['GET'],
    readOnlyPort: true,
    async serve({ path, response }) {
      if (path.length > 1) throw new HttpProblem(404, '404 page not found');
      const body = Buffer.from(await metrics.text());
      response.writeHead(200, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8', 'Content-Length': body.length });
      response.end(body);
    },
  };
}

/** `/configz`: the options in effect, feature gates among them. */
export function configRoute(effective: Readonly<Record<string, unknown>>): Route {
  return { first: 'configz', methods: ['GET'], serve: ({ response }) => sendJson(response, { agentconfig: effective }) };
}

/** Debug endpoints that do not exist yet; asking for them is answered plainly. */
export const missingRoutes: readonly Route[] = ['exec', 'attach', 'portForward', 'run', 'logs', 'cri', 'debug'].map((first) => ({
  first,
  methods: ['GET', 'POST'],
  debug: true,
  serve() {
    throw new HttpProblem(501, `/${first} is not yet supported`);
  },
}));
