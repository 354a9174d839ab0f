import type { Pod } from '@keelson/kinds';
import type { PodQueries } from '../base/contracts/pod-queries.ts';
import { sendJson } from './http/request.ts';
import type { Route } from './http/route.ts';

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
