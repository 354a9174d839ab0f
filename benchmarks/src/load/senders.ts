import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { Connection } from '@keelson/bench/internal';
import type { LoadTarget } from './protocol.ts';

/** Sends requests, given as the text of HTTP/1.1, one after the other. */
export interface Sender {
  /** Resolves to the status code, 0 when the connection failed. */
  send(request: string): Promise<number>;
  readonly closed: boolean;
  close(): void;
}

/** So much may arrive before the client grants more: flow control is not what is measured. */
const windowBytes = 16 * 1024 * 1024;

/** An HTTP/2 connection with TLS, whose streams are senders. */
export class Http2Connection {
  readonly #session: ClientHttp2Session;
  #senders = 0;

  constructor(port: number) {
    this.#session = connect(`https://127.0.0.1:${port}`, {
      rejectUnauthorized: false,
      settings: { initialWindowSize: windowBytes, enablePush: false },
    });
    this.#session.once('connect', () => this.#session.setLocalWindowSize(windowBytes));
    // Streams report the failure of their connection.
    this.#session.on('error', () => {});
  }

  /** Sends a request on a stream of its own. */
  open(request: string): ClientHttp2Stream {
    const end = request.indexOf('\r\n\r\n');
    const [line = '', ...fields] = request.slice(0, end).split('\r\n');
    const [method = '', path = ''] = line.split(' ');
    const headers: Record<string, string> = { ':method': method, ':path': path };
    for (const field of fields) {
      const colon = field.indexOf(':');
      const name = field.slice(0, colon).toLowerCase();
      if (name !== 'host') headers[name] = field.slice(colon + 2);
    }
    const body = request.slice(end + 4);
    const stream = this.#session.request(headers, { endStream: body === '' });
    if (body !== '') stream.end(body);
    return stream;
  }

  sender(): Sender {
    this.#senders += 1;
    const isClosed = () => this.#session.closed || this.#session.destroyed;
    return {
      send: (request) => this.#send(request),
      get closed() {
        return isClosed();
      },
      close: () => {
        this.#senders -= 1;
        if (this.#senders === 0) this.close();
      },
    };
  }

  close(): void {
    this.#session.destroy();
  }

  #send(request: string): Promise<number> {
    if (this.#session.closed || this.#session.destroyed) return Promise.resolve(0);
    return new Promise((resolve) => {
      let status = 0;
      let complete = false;
      const stream = this.open(request);
      stream.on('response', (headers) => {
        status = Number(headers[':status']);
      });
      stream.on('data', () => {});
      stream.on('end', () => {
        complete = true;
      });
      stream.on('error', () => {});
      stream.on('close', () => resolve(complete ? status : 0));
    });
  }
}

/** So many senders: connections with HTTP/1.1, or streams that share connections. */
export function openSenders({ port, tls, streams }: LoadTarget, count: number): Sender[] {
  if (streams === undefined) {
    const secure = tls ? { tls: { rejectUnauthorized: false } } : {};
    return Array.from({ length: count }, () => new Connection({ port, ...secure }));
  }
  const connections = Array.from({ length: Math.ceil(count / streams) }, () => new Http2Connection(port));
  return Array.from({ length: count }, (_, at) => (connections[at % connections.length] as Http2Connection).sender());
}
