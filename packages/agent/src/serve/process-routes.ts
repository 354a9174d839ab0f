import { type StreamLimits, upgradeToProcess } from '@keelson/container-streams';
import type { PodStreams } from '../base/contracts/pod-streams.ts';
import { requireKnownCaller } from './access/known-caller.ts';
import { HttpProblem } from './http/request.ts';
import type { Route } from './http/route.ts';
import { takeOver } from './http/upgrade.ts';
import { askPod } from './pod-problem.ts';
import { containerOf, streamRequestOf } from './stream-query.ts';

/**
 * `/exec/…` and `/attach/{namespace}/{pod}[/{uid}]/{container}`: processes of containers, over WebSockets and SPDY/3.1.
 */
export function processRoutes(streams: Pick<PodStreams, 'exec' | 'attach'>, limits: StreamLimits): Route[] {
  const common = { methods: ['GET', 'POST'], debug: true };
  return [
    {
      ...{ ...common, first: 'exec' },
      async serve(request) {
        requireKnownCaller(request, 'commands are run');
        const wanted = streamRequestOf(request.query);
        const command = request.query.getAll('command');
        if (command.length === 0) throw new HttpProblem(400, 'the query must name a command: ?command=ls&command=/');
        const begin = askPod(() => streams.exec(containerOf(request.path), { ...wanted, command }));
        const endOf = (exitCode: number) => ({ exitCode });
        const task = { begin, endOf, failure: 'error executing command in container' };
        await takeOver(request, (upgrade) => upgradeToProcess(upgrade, wanted, task, limits));
      },
    },
    {
      ...{ ...common, first: 'attach' },
      async serve(request) {
        requireKnownCaller(request, 'containers are attached');
        const wanted = streamRequestOf(request.query);
        const begin = askPod(() => streams.attach(containerOf(request.path), wanted));
        // Attach succeeds when the container ends, with any exit code; the code is in the status of the pod.
        const endOf = () => ({ exitCode: 0 });
        const task = { begin, endOf, failure: 'error attaching to container' };
        await takeOver(request, (upgrade) => upgradeToProcess(upgrade, wanted, task, limits));
      },
    },
  ];
}
