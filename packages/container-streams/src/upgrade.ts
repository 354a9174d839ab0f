import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { listed } from './protocols.ts';

/** Maximum bytes of a WebSocket message, the limit of the kubelet. */
const maxMessageBytes = 32 * 1024 * 1024;

const spdyName = 'SPDY/3.1';

/** A request to continue the connection in another protocol. */
export interface StreamUpgrade {
  readonly incoming: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes that were read after the request. */
  readonly head: Buffer;
  /** Called when the upgrade is accepted. Until then the request can be answered in HTTP. */
  readonly accepted: () => void;
}

/** An upgrade that is rejected: the request must be answered in HTTP with this status. */
export class UpgradeRefused extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, reason: string, headers: Readonly<Record<string, string>> = {}) {
    super(`unable to upgrade: ${reason}`);
    this.name = 'UpgradeRefused';
    this.status = status;
    this.headers = headers;
  }
}

/** The protocol that a request specifies. @throws UpgradeRefused for an unsupported protocol. */
export function upgradeWanted({ headers }: IncomingMessage): 'websocket' | 'spdy' {
  const names = listed(headers.upgrade).map((name) => name.toLowerCase());
  if (names.includes('websocket')) return 'websocket';
  if (names.includes(spdyName.toLowerCase())) return 'spdy';
  throw new UpgradeRefused(400, `the request must ask for an upgrade to a WebSocket or to ${spdyName}`);
}

export const offeredWebSocket = ({ headers }: IncomingMessage) => listed(headers['sec-websocket-protocol']);
export const offeredSpdy = ({ headers }: IncomingMessage) => listed(headers['x-stream-protocol-version']);

/** The error for a client that offers only unsupported protocols. */
export function noCommonProtocol(
  status: number,
  offered: readonly string[],
  supported: readonly string[],
): UpgradeRefused {
  const sets = `client supports [${offered.join(' ')}], server accepts [${supported.join(' ')}]`;
  return new UpgradeRefused(status, `unable to negotiate protocol: ${sets}`, {
    'X-Accepted-Stream-Protocol-Versions': supported.join(', '),
  });
}

/**
 * Accepts the connection as a WebSocket with the chosen protocol; undefined = without one. Nothing is read from the
 * WebSocket before it is resumed.
 *
 * @throws UpgradeRefused when the handshake is invalid
 */
export function acceptWebSocket(upgrade: StreamUpgrade, protocol: string | undefined): Promise<WebSocket> {
  const { incoming, socket, head, accepted } = upgrade;
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: maxMessageBytes,
  });
  // The WebSocket library would reject the handshake because the name of the tunnel protocol contains a slash.
  delete incoming.headers['sec-websocket-protocol'];
  if (protocol !== undefined) server.on('headers', (headers) => headers.push(`Sec-WebSocket-Protocol: ${protocol}`));
  return new Promise((resolve, reject) => {
    server.once('wsClientError', (error) => reject(new UpgradeRefused(400, error.message)));
    server.handleUpgrade(incoming, socket, head, (opened) => {
      accepted();
      opened.pause();
      resolve(opened);
    });
  });
}

/** Accepts the connection as SPDY with the chosen protocol; undefined = without one. */
export function acceptSpdy({ socket, head, accepted }: StreamUpgrade, protocol: string | undefined): Duplex {
  accepted();
  const chosen = protocol === undefined ? '' : `X-Stream-Protocol-Version: ${protocol}\r\n`;
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${spdyName}\r\n${chosen}\r\n`);
  if (head.length > 0) socket.unshift(head);
  return socket;
}
