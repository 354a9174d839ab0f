import type { Socket } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { listed } from '../streams/protocols.ts';
import { type AgentRequest, HttpProblem, type UpgradeOffer } from './request.ts';

/** Largest message of a WebSocket: what a kubelet takes. */
const maxMessageBytes = 32 * 1024 * 1024;

const spdyWord = 'SPDY/3.1';

/** To what protocol a request would be upgraded; undefined when to none that is spoken here. */
export function upgradeWanted({
  upgrade,
  incoming,
}: Pick<AgentRequest, 'upgrade' | 'incoming'>): 'websocket' | 'spdy' | undefined {
  if (upgrade === undefined) return undefined;
  const words = listed(incoming.headers.upgrade).map((word) => word.toLowerCase());
  if (words.includes('websocket')) return 'websocket';
  return words.includes(spdyWord.toLowerCase()) ? 'spdy' : undefined;
}

export const noUpgrade = () =>
  new HttpProblem(400, 'unable to upgrade: the request must ask for an upgrade to a WebSocket or to SPDY/3.1');

export const offeredWebSocket = ({ incoming }: AgentRequest) => listed(incoming.headers['sec-websocket-protocol']);
export const offeredSpdy = ({ incoming }: AgentRequest) => listed(incoming.headers['x-stream-protocol-version']);

/** None of the protocols that were offered is spoken. */
export function notSpoken(status: number, offered: readonly string[], spoken: readonly string[]): HttpProblem {
  const sets = `client supports [${offered.join(' ')}], server accepts [${spoken.join(' ')}]`;
  return new HttpProblem(status, `unable to upgrade: unable to negotiate protocol: ${sets}`, {
    'X-Accepted-Stream-Protocol-Versions': spoken.join(', '),
  });
}

/**
 * Makes the connection a WebSocket of the protocol chosen; undefined = of none. Nothing is read from it before it is resumed.
 *
 * @throws HttpProblem when the handshake is none
 */
export function acceptWebSocket({ upgrade, incoming, response }: AgentRequest, protocol: string | undefined): Promise<WebSocket> {
  const { socket, head } = upgrade as UpgradeOffer;
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: maxMessageBytes,
  });
  // Names with a slash, such as that of the tunnel, are no tokens, and the library would refuse the handshake for them.
  delete incoming.headers['sec-websocket-protocol'];
  if (protocol !== undefined) server.on('headers', (headers) => headers.push(`Sec-WebSocket-Protocol: ${protocol}`));
  return new Promise((resolve, reject) => {
    server.once('wsClientError', (error) => reject(new HttpProblem(400, `unable to upgrade: ${error.message}`)));
    server.handleUpgrade(incoming, socket, head, (opened) => {
      response.detachSocket(socket as Socket);
      opened.pause();
      resolve(opened);
    });
  });
}

/** Tells the caller to go on in SPDY, with the protocol chosen; undefined = none. */
export function acceptSpdy({ upgrade, response }: AgentRequest, protocol: string | undefined): UpgradeOffer['socket'] {
  const { socket, head } = upgrade as UpgradeOffer;
  response.detachSocket(socket as Socket);
  const chosen = protocol === undefined ? '' : `X-Stream-Protocol-Version: ${protocol}\r\n`;
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${spdyWord}\r\n${chosen}\r\n`);
  if (head.length > 0) socket.unshift(head);
  return socket;
}
