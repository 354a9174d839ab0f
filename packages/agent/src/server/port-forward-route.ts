import { createWebSocketStream } from 'ws';
import type { PodStreams } from '../contracts/pod-streams.ts';
import { ChannelSocket } from '../streams/channel-socket.ts';
import { channelProtocolNames, chooseChannelProtocol, portForwardProtocol, tunnelProtocol } from '../streams/protocols.ts';
import { type PortSource, serveSpdyPorts } from '../streams/spdy-ports.ts';
import { type StreamLimits, watched } from '../streams/stream-limits.ts';
import { serveWebSocketPorts } from '../streams/web-socket-ports.ts';
import { requireKnownCaller } from './access/known-caller.ts';
import { askPod } from './pod-problem.ts';
import type { AgentRequest } from './request.ts';
import type { Route } from './route.ts';
import { podOf, portsOf } from './stream-query.ts';
import { acceptSpdy, acceptWebSocket, notSpoken, noUpgrade, offeredSpdy, offeredWebSocket, upgradeWanted } from './upgrade.ts';

/** The last version of channels that has a form for ports. */
const newestOfPorts = 4;

/** `/portForward/{namespace}/{pod}[/{uid}]`: connections to ports of a pod, over SPDY/3.1, SPDY in a WebSocket, and WebSockets. */
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
      const upgrade = upgradeWanted(request);
      if (upgrade === 'spdy') overSpdy(request, source, limits);
      else if (upgrade !== 'websocket') throw noUpgrade();
      else if (offeredWebSocket(request).includes(tunnelProtocol)) await inTunnel(request, source, limits);
      else await overChannels(request, source, limits);
    },
  };
}

function overSpdy(request: AgentRequest, source: PortSource, limits: StreamLimits): void {
  const offered = offeredSpdy(request);
  if (!offered.includes(portForwardProtocol)) throw notSpoken(403, offered, [portForwardProtocol]);
  const socket = acceptSpdy(request, portForwardProtocol);
  const end = () => socket.destroy();
  watched(limits, end, (onActivity) => serveSpdyPorts({ socket, clock: limits.clock, onActivity }, source));
}

async function inTunnel(request: AgentRequest, source: PortSource, limits: StreamLimits): Promise<void> {
  const outer = await acceptWebSocket(request, tunnelProtocol);
  const socket = createWebSocketStream(outer);
  outer.resume();
  const end = () => outer.terminate();
  watched(limits, end, (onActivity) => serveSpdyPorts({ socket, clock: limits.clock, onActivity }, source));
}

async function overChannels(request: AgentRequest, source: PortSource, limits: StreamLimits): Promise<void> {
  const offered = offeredWebSocket(request);
  const protocol = chooseChannelProtocol(offered, newestOfPorts);
  if (protocol === undefined) throw notSpoken(400, offered, [tunnelProtocol, ...channelProtocolNames(newestOfPorts)]);
  const ports = portsOf(request.query);
  const socket = await acceptWebSocket(request, protocol.name);
  const end = () => socket.terminate();
  const channels = watched(limits, end, (onActivity) => new ChannelSocket({ socket, base64: protocol.base64, onActivity }));
  await serveWebSocketPorts(channels, ports, source);
}
