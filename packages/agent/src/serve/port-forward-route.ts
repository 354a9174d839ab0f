import { type StreamLimits, upgradeToPorts } from '@keelson/container-streams';
import type { PodStreams } from '../base/contracts/pod-streams.ts';
import { requireKnownCaller } from './access/known-caller.ts';
import type { Route } from './http/route.ts';
import { takeOver } from './http/upgrade.ts';
import { askPod } from './pod-problem.ts';
import { podOf, portsOf } from './stream-query.ts';

/**
 * `/portForward/{namespace}/{pod}[/{uid}]`: connections to ports of a pod, over SPDY/3.1, SPDY in a WebSocket, and
 * WebSockets.
 */
export function portForwardRoute(streams: Pick<PodStreams, 'portForward'>, limits: StreamLimits): Route {
  return {
    first: 'portForward',
    methods: ['GET', 'POST'],
    debug: true,
    async serve(request) {
      requireKnownCaller(request, 'ports are forwarded');
      const address = podOf(request.path);
      const open = askPod(() => streams.portForward(address));
      const source = { label: `pod ${address.pod}, uid ${address.uid ?? ''}`, open };
      await takeOver(request, (upgrade) => upgradeToPorts(upgrade, () => portsOf(request.query), source, limits));
    },
  };
}
