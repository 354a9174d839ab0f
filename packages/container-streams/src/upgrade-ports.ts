import { createWebSocketStream } from 'ws';
import { ChannelSocket } from './channel-socket.ts';
import { channelProtocolNames, chooseChannelProtocol, portForwardProtocol, tunnelProtocol } from './protocols.ts';
import { type PortSource, serveSpdyPorts } from './spdy-ports.ts';
import { type StreamLimits, watched } from './stream-limits.ts';
import {
  acceptSpdy,
  acceptWebSocket,
  noCommonProtocol,
  offeredSpdy,
  offeredWebSocket,
  type StreamUpgrade,
  upgradeWanted,
} from './upgrade.ts';
import { serveWebSocketPorts } from './web-socket-ports.ts';

/** The latest version of the channel protocol that supports ports. */
const newestOfPorts = 4;

/**
 * Serves connections to ports of a pod over the requested protocol: SPDY/3.1, SPDY in a WebSocket, or a WebSocket with
 * channels for the ports in `channelPorts`.
 * @throws UpgradeRefused while the request can still be answered in HTTP
 */
export async function upgradeToPorts(
  upgrade: StreamUpgrade,
  channelPorts: () => readonly number[],
  source: PortSource,
  limits: StreamLimits,
): Promise<void> {
  if (upgradeWanted(upgrade.incoming) === 'spdy') overSpdy(upgrade, source, limits);
  else if (offeredWebSocket(upgrade.incoming).includes(tunnelProtocol)) await inTunnel(upgrade, source, limits);
  else await overChannels(upgrade, channelPorts, source, limits);
}

function overSpdy(upgrade: StreamUpgrade, source: PortSource, limits: StreamLimits): void {
  const offered = offeredSpdy(upgrade.incoming);
  if (!offered.includes(portForwardProtocol)) throw noCommonProtocol(403, offered, [portForwardProtocol]);
  const socket = acceptSpdy(upgrade, portForwardProtocol);
  const end = () => socket.destroy();
  watched(limits, end, (onActivity) => serveSpdyPorts({ socket, clock: limits.clock, onActivity }, source));
}

async function inTunnel(upgrade: StreamUpgrade, source: PortSource, limits: StreamLimits): Promise<void> {
  const outer = await acceptWebSocket(upgrade, tunnelProtocol);
  const socket = createWebSocketStream(outer);
  outer.resume();
  const end = () => outer.terminate();
  watched(limits, end, (onActivity) => serveSpdyPorts({ socket, clock: limits.clock, onActivity }, source));
}

async function overChannels(
  upgrade: StreamUpgrade,
  channelPorts: () => readonly number[],
  source: PortSource,
  limits: StreamLimits,
): Promise<void> {
  const offered = offeredWebSocket(upgrade.incoming);
  const protocol = chooseChannelProtocol(offered, newestOfPorts);
  if (protocol === undefined)
    throw noCommonProtocol(400, offered, [tunnelProtocol, ...channelProtocolNames(newestOfPorts)]);
  const ports = channelPorts();
  const socket = await acceptWebSocket(upgrade, protocol.name);
  const end = () => socket.terminate();
  const channels = watched(
    limits,
    end,
    (onActivity) => new ChannelSocket({ socket, base64: protocol.base64, onActivity }),
  );
  await serveWebSocketPorts(channels, ports, source);
}
