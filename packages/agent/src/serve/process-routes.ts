import type { Socket } from 'node:net';
import { isRuntimeError } from '@keelson/container-runtime';
import {
  type StreamLimits,
  type StreamUpgrade,
  UpgradeRefused,
  upgradeToPorts,
  upgradeToProcess,
} from '@keelson/container-streams';
import { PodQueryError } from '../base/contracts/pod-queries.ts';
import type { PodStreams } from '../base/contracts/pod-streams.ts';
import { requireKnownCaller } from './access/known-caller.ts';
import { type AgentRequest, HttpProblem, sendText } from './http/request.ts';
import type { Route } from './http/route.ts';
import { askPod, podProblem } from './pod-problem.ts';
import { containerOf, podOf, portsOf, streamRequestOf } from './stream-query.ts';

/**
 * Continues the connection of a request in another protocol.
 * @throws HttpProblem for a request without a supported protocol
 */
export async function takeOver(
  { upgrade, incoming, response }: AgentRequest,
  serve: (upgrade: StreamUpgrade) => Promise<void>,
): Promise<void> {
  if (upgrade === undefined) {
    throw new HttpProblem(400, 'unable to upgrade: the request must ask for an upgrade to a WebSocket or to SPDY/3.1');
  }
  try {
    await serve({ ...upgrade, incoming, accepted: () => response.detachSocket(upgrade.socket as Socket) });
  } catch (error) {
    if (error instanceof UpgradeRefused) throw new HttpProblem(error.status, error.message, error.headers);
    throw error;
  }
}

/**
 * `/run/{namespace}/{pod}[/{uid}]/{container}?cmd=`: runs a command, split at spaces, and answers with its output.
 */
export function runRoute(streams: Pick<PodStreams, 'run'>): Route {
  return {
    first: 'run',
    methods: ['POST'],
    debug: true,
    async serve(request) {
      requireKnownCaller(request, 'commands are run');
      const { path, query, response } = request;
      const container = containerOf(path);
      const command = (query.get('cmd') ?? '').split(' ').filter((word) => word !== '');
      if (command.length === 0) throw new HttpProblem(400, 'the query must name a command: ?cmd=ls%20/');
      const gone = new AbortController();
      response.once('close', () => gone.abort());
      try {
        const { exitCode, stdout, stderr } = await streams.run(container, command, gone.signal);
        const output = Buffer.concat([stdout, stderr]).toString();
        if (exitCode !== 0)
          throw new HttpProblem(500, `command "${command.join(' ')}" exited with ${exitCode}: ${output}`);
        sendText(response, output);
      } catch (error) {
        if (error instanceof PodQueryError) throw podProblem(error);
        if (isRuntimeError(error)) throw new HttpProblem(500, `error executing command in container: ${error.message}`);
        throw error;
      }
    },
  };
}

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
