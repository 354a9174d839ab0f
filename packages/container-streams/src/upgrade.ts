import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { listed } from './protocols.ts';

/** Largest message of a WebSocket: what a kubelet takes. */
const maxMessageBytes = 32 * 1024 * 1024;

const spdyName = 'SPDY/3.1';

/** A request whose connection is to continue in another protocol. */
export interface StreamUpgrade {
  readonly incoming: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes of the connection that were read behind the request. */
  readonly head: Buffer;
  /** Called when the connection is taken over; before that the request can be answered in HTTP. */
  readonly accepted: () => void;
}

/** The request is to be answered in HTTP with this status. */
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

/** Which protocol a request asks for. @throws UpgradeRefused for any other */
export function upgradeWanted({ headers }: IncomingMessage): 'websocket' | 'spdy' {
  const names = listed(headers.upgrade).map((name) => name.toLowerCase());
  if (names.includes('websocket')) return 'websocket';
  if (names.includes(spdyName.toLowerCase())) return 'spdy';
  throw new UpgradeRefused(400, `the request must ask for an upgrade to a WebSocket or to ${spdyName}`);
}

export const offeredWebSocket = ({ headers }: IncomingMessage) => listed(headers['sec-websocket-protocol']);
export const offeredSpdy = ({ headers }: IncomingMessage) => listed(headers['x-stream-protocol-version']);

/** None of the offered protocols is spoken. */
export function notSpoken(status: number, offered: readonly string[], spoken: readonly string[]): UpgradeRefused {
  const sets = `client supports [${offered.join(' ')}], server accepts [${spoken.join(' ')}]`;
  return new UpgradeRefused(status, `unable to negotiate protocol: ${sets}`, {
    'X-Accepted-Stream-Protocol-Versions': spoken.join(', '),
  });
}

/**
 * Makes the connection a WebSocket of the chosen protocol; undefined = of none. Nothing is read from it before it is
 * resumed.
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
  // Names with a slash, such as that of the tunnel, are no tokens, and the library would refuse the handshake for them.
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

/** Continues in SPDY, with the chosen protocol; undefined = none. */
export function acceptSpdy({ socket, head, accepted }: StreamUpgrade, protocol: string | undefined): Duplex {
  accepted();
  const chosen = protocol === undefined ? '' : `X-Stream-Protocol-Version: ${protocol}\r\n`;
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${spdyName}\r\n${chosen}\r\n`);
  if (head.length > 0) socket.unshift(head);
  return socket;
}
