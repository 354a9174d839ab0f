import type { PodQueries } from '../../base/contracts/pod-queries.ts';
import type { UsageHistory } from '../../machine/stats/usage-history.ts';
import { type AgentRequest, HttpProblem, sendJson } from '../http/request.ts';
import { containerInfo, containerTree, subtree } from './container-info.ts';
import { readStatsRequest, type StatsRequest } from './stats-request.ts';

export interface ContainerStatsOptions {
  readonly state: Pick<PodQueries, 'pods'>;
  readonly history: Pick<UsageHistory, 'read'>;
}

/** The container that a path below `/stats` names; the namespace is `default` if it is not given. */
function wantedOf([, ...words]: readonly string[]) {
  if (words.length === 2) return { namespace: 'default', pod: words[0], uid: undefined, container: words[1] };
  if (words.length === 4) return { namespace: words[0], pod: words[1], uid: words[2], container: words[3] };
  throw new HttpProblem(404, '404 page not found');
}

/**
 * Usage of single containers: `/stats` the host, `/stats/container` the container that the body names,
 * `/stats/{pod}/{container}` and `/stats/{namespace}/{pod}/{uid}/{container}` one of a pod. The body selects
 * samples.
 */
export function containerStats({ state, history }: ContainerStatsOptions): (request: AgentRequest) => Promise<void> {
  async function raw({ containerName, subcontainers, range }: StatsRequest) {
    const found = subtree(containerTree(await history.read(), range), containerName);
    if (found.length === 0) throw new HttpProblem(404, `container ${JSON.stringify(containerName)} does not exist`);
    return Object.fromEntries((subcontainers ? found : found.slice(0, 1)).map((one) => [one.name, one]));
  }

  async function ofPod(path: readonly string[], { range }: StatsRequest) {
    const { namespace, pod, uid, container } = wantedOf(path);
    const { containers } = await history.read();
    const found = containers.find(
      ({ of }) =>
        of?.namespace === namespace && of?.pod === pod && of?.container === container && (uid ?? of?.uid) === of?.uid,
    );
    if (found !== undefined) return containerInfo(found, range);
    const known = state.pods().some(({ metadata }) => metadata?.namespace === namespace && metadata?.name === pod);
    const what = known
      ? `container ${JSON.stringify(container)} is not measured`
      : `pod ${JSON.stringify(pod)} does not exist`;
    throw new HttpProblem(404, what);
  }

  return async (request) => {
    const { path, response } = request;
    const wanted = await readStatsRequest(request);
    if (path.length === 1) sendJson(response, containerTree(await history.read(), wanted.range).get('/'));
    else if (path.length === 2 && path[1] === 'container') sendJson(response, await raw(wanted));
    else sendJson(response, await ofPod(path, wanted));
  };
}
