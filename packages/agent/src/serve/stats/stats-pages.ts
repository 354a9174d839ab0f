import { readMachineInfo } from '../../machine/stats/machine-info.ts';
import type { UsageHistory } from '../../machine/stats/usage-history.ts';
import { type AgentRequest, HttpProblem, sendJson, sendMetrics, sendText } from '../http/request.ts';
import type { Route } from '../http/route.ts';
import { containerTree, subtree } from './container-info.ts';
import { containersPage } from './containers-page.ts';
import { readStatsRequest } from './stats-request.ts';
import { usageMetrics } from './usage-metrics.ts';

/** Supported versions of the API. */
const versions = ['v1.0', 'v1.1', 'v1.2', 'v1.3'];
const kinds = ['containers', 'machine', 'subcontainers'];
const notFound = () => new HttpProblem(404, '404 page not found');

/**
 * The routes of the statistics port, a part of cAdvisor's API: `/api/v1.3/machine`, `/api/v1.3/containers/NAME` and
 * `subcontainers`, `/metrics`, and `/containers/NAME` for people.
 */
export function statsPages(history: Pick<UsageHistory, 'read'>): Route[] {
  const found = async (name: readonly string[], range: Parameters<typeof containerTree>[1]) => {
    const path = `/${name.join('/')}`;
    const shown = subtree(containerTree(await history.read(), range), path);
    if (shown.length === 0) throw new HttpProblem(404, `container ${JSON.stringify(path)} does not exist`);
    return shown;
  };

  async function api(request: AgentRequest): Promise<void> {
    const { path, response } = request;
    const [, version, kind, ...name] = path;
    if (version === undefined) return sendJson(response, versions);
    if (!versions.includes(version))
      throw new HttpProblem(404, `unknown version ${JSON.stringify(version)}; use one of ${versions.join(', ')}`);
    if (kind === undefined) return sendJson(response, kinds);
    if (kind === 'machine' && name.length === 0) return sendJson(response, await readMachineInfo());
    if (kind !== 'containers' && kind !== 'subcontainers') throw notFound();
    const { range } = await readStatsRequest(request);
    const shown = await found(name, range);
    sendJson(response, kind === 'containers' ? shown[0] : shown);
  }

  return [
    {
      first: '',
      methods: ['GET'],
      serve({ response }) {
        response.writeHead(307, { Location: '/containers/', 'Content-Length': 0 }).end();
      },
    },
    { first: 'healthz', methods: ['GET'], serve: ({ response }) => sendText(response, 'ok') },
    {
      first: 'metrics',
      methods: ['GET'],
      async serve({ response, path }) {
        if (path.length > 1) throw notFound();
        sendMetrics(response, await usageMetrics(await history.read()));
      },
    },
    { first: 'api', methods: ['GET', 'POST'], serve: api },
    {
      first: 'containers',
      methods: ['GET'],
      async serve({ response, path: [, ...name] }) {
        const all = {
          count: Number.POSITIVE_INFINITY,
          startMs: Number.NEGATIVE_INFINITY,
          endMs: Number.POSITIVE_INFINITY,
        };
        await found(name, all);
        containersPage(response, `/${name.join('/')}`, await history.read());
      },
    },
  ];
}
