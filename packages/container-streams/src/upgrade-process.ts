import type { StreamRequest } from '@keelson/container-runtime';
import { ChannelSocket } from './channel-socket.ts';
import { channelProtocolNames, chooseChannelProtocol, chooseSpdyProtocol, spdyProtocolNames } from './protocols.ts';
import { type ProcessTask, serveProcess } from './serve-process.ts';
import { spdyProcess } from './spdy-process.ts';
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
import { WebSocketProcess } from './web-socket-process.ts';

const newest = 5;

/**
 * Serves a process over the requested protocol: WebSocket (`channel.k8s.io`, versions 1 to 5) or SPDY/3.1. Resolves
 * when the process has ended.
 * @throws UpgradeRefused while the request can still be answered in HTTP
 */
export async function upgradeToProcess(
  upgrade: StreamUpgrade,
  wanted: StreamRequest,
  task: ProcessTask,
  limits: StreamLimits,
): Promise<void> {
  if (upgradeWanted(upgrade.incoming) === 'websocket') await overWebSocket(upgrade, wanted, task, limits);
  else await overSpdy(upgrade, wanted, task, limits);
}

async function overWebSocket(
  upgrade: StreamUpgrade,
  wanted: StreamRequest,
  task: ProcessTask,
  limits: StreamLimits,
): Promise<void> {
  const offered = offeredWebSocket(upgrade.incoming);
  const protocol = chooseChannelProtocol(offered, newest);
  if (protocol === undefined) throw noCommonProtocol(400, offered, channelProtocolNames(newest));
  const socket = await acceptWebSocket(upgrade, protocol.name);
  const end = () => socket.terminate();
  const channels = watched(
    limits,
    end,
    (onActivity) => new ChannelSocket({ socket, base64: protocol.base64, onActivity }),
  );
  await serveProcess(new WebSocketProcess(channels, protocol.version, wanted), task);
}

async function overSpdy(
  upgrade: StreamUpgrade,
  wanted: StreamRequest,
  task: ProcessTask,
  limits: StreamLimits,
): Promise<void> {
  const offered = offeredSpdy(upgrade.incoming);
  const protocol = chooseSpdyProtocol(offered);
  if (protocol === undefined) throw noCommonProtocol(403, offered, spdyProtocolNames);
  const socket = acceptSpdy(upgrade, protocol.name);
  const end = () => socket.destroy();
  const opened = watched(limits, end, (onActivity) =>
    spdyProcess({ socket, clock: limits.clock, onActivity }, protocol.version, wanted),
  );
  const caller = await opened.process;
  if (caller !== undefined) await serveProcess(caller, task);
}
