import type { StreamRequest } from '@keelson/container-runtime';
import type { PodStreams } from '../contracts/pod-streams.ts';
import { ChannelSocket } from '../streams/channel-socket.ts';
import { channelProtocolNames, chooseChannelProtocol, chooseSpdyProtocol, spdyProtocolNames } from '../streams/protocols.ts';
import { type ProcessTask, serveProcess } from '../streams/serve-process.ts';
import { spdyProcess } from '../streams/spdy-process.ts';
import { type StreamLimits, watched } from '../streams/stream-limits.ts';
import { WebSocketProcess } from '../streams/web-socket-process.ts';
import { requireKnownCaller } from './access/known-caller.ts';
import { askPod } from './pod-problem.ts';
import { type AgentRequest, HttpProblem } from './request.ts';
import type { Route } from './route.ts';
import { containerOf, streamRequestOf } from './stream-query.ts';
import { acceptSpdy, acceptWebSocket, notSpoken, noUpgrade, offeredSpdy, offeredWebSocket, upgradeWanted } from './upgrade.ts';

const newest = 5;

/** `/exec/…` and `/attach/{namespace}/{pod}[/{uid}]/{container}`: processes of containers, over WebSockets and SPDY/3.1. */
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
        await serveTask(request, wanted, { begin, endOf, failure: 'error executing command in container' }, limits);
      },
    },
    {
      ...{ ...common, first: 'attach' },
      async serve(request) {
        requireKnownCaller(request, 'containers are attached');
        const wanted = streamRequestOf(request.query);
        const begin = askPod(() => streams.attach(containerOf(request.path), wanted));
        // To have watched a container to its end is a success whatever its exit code, which stands in the pod's status.
        const endOf = () => ({ exitCode: 0 });
        await serveTask(request, wanted, { begin, endOf, failure: 'error attaching to container' }, limits);
      },
    },
  ];
}

async function serveTask(request: AgentRequest, wanted: StreamRequest, task: ProcessTask, limits: StreamLimits): Promise<void> {
  const upgrade = upgradeWanted(request);
  if (upgrade === 'websocket') await overWebSocket(request, wanted, task, limits);
  else if (upgrade === 'spdy') await overSpdy(request, wanted, task, limits);
  else throw noUpgrade();
}

async function overWebSocket(
  request: AgentRequest,
  wanted: StreamRequest,
  task: ProcessTask,
  limits: StreamLimits,
): Promise<void> {
  const offered = offeredWebSocket(request);
  const protocol = chooseChannelProtocol(offered, newest);
  if (protocol === undefined) throw notSpoken(400, offered, channelProtocolNames(newest));
  const socket = await acceptWebSocket(request, protocol.name);
  const end = () => socket.terminate();
  const channels = watched(limits, end, (onActivity) => new ChannelSocket({ socket, base64: protocol.base64, onActivity }));
  await serveProcess(new WebSocketProcess(channels, protocol.version, wanted), task);
}

async function overSpdy(request: AgentRequest, wanted: StreamRequest, task: ProcessTask, limits: StreamLimits): Promise<void> {
  const offered = offeredSpdy(request);
  const protocol = chooseSpdyProtocol(offered);
  if (protocol === undefined) throw notSpoken(403, offered, spdyProtocolNames);
  const socket = acceptSpdy(request, protocol.name);
  const end = () => socket.destroy();
  const opened = watched(limits, end, (onActivity) =>
    spdyProcess({ socket, clock: limits.clock, onActivity }, protocol.version, wanted),
  );
  const caller = await opened.process;
  if (caller !== undefined) await serveProcess(caller, task);
}
