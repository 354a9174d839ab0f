import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** Where hostile requests are sent; with a certificate authority the connection is TLS. */
export interface HostileTarget {
  readonly host: string;
  readonly port: number;
  readonly tls?: { readonly ca: string; readonly cert?: string; readonly key?: string };
}

/** The target of a server's URL with the credential of a kubeconfig. */
export function targetOf(
  url: string,
  credential?: { authority: string; certificate: string; key: string },
): HostileTarget {
  const { hostname, port } = new URL(url);
  if (credential === undefined) return { host: hostname, port: Number(port) };
  const { authority, certificate, key } = credential;
  return { host: hostname, port: Number(port), tls: { ca: authority, cert: certificate, key } };
}

/** The result of one request. `closed` without a status: the server ended the connection and returned nothing. */
export interface HostileReply {
  readonly outcome: 'answered' | 'streaming' | 'closed' | 'hung';
  readonly status: number;
  readonly head: string;
  readonly body: Buffer;
}

/** What is sent; see `HostileRequest`. */
export interface SentRequest {
  readonly bytes: Buffer;
  readonly noReplyBody?: boolean;
  readonly incomplete?: boolean;
}

/** A request may take this long, on a machine that does other work too. */
const hangMs = 20_000;
/** A request whose body is missing is given up after this time. */
const incompleteMs = 50;
/** A reply that has begun and stays incomplete for so long is a stream; a watch ends only with its connection. */
const streamMs = 250;

/** Opens a connection; resolves when it is ready for bytes. */
export async function openSocket({ host, port, tls }: HostileTarget, protocol?: 'h2'): Promise<Socket> {
  const socket = tls
    ? connectTls({ host, port, ...tls, ...(protocol ? { ALPNProtocols: [protocol] } : {}) })
    : connectPlain({ host, port });
  socket.setNoDelay(true);
  // An attacker does not care how its connection ends.
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => {
    socket.once(tls ? 'secureConnect' : 'connect', resolve);
    socket.once('close', () => resolve());
  });
  return socket;
}

/**
 * An HTTP/1.1 client that sends any bytes as a request and reads one reply. It does not validate what it sends, which
 * clients of libraries do. The connection is reused while the server keeps it open.
 */
export class HostileClient {
  readonly #target: HostileTarget;
  #socket: Socket | undefined;

  constructor(target: HostileTarget) {
    this.#target = target;
  }

  async send({ bytes, noReplyBody = false, incomplete = false }: SentRequest): Promise<HostileReply> {
    if (this.#socket === undefined || this.#socket.destroyed) this.#socket = await openSocket(this.#target);
    const socket = this.#socket;
    const reply = await this.#exchange(socket, bytes, noReplyBody, incomplete ? incompleteMs : hangMs);
    if (reply.outcome !== 'answered' || /\r\nconnection: close/i.test(reply.head)) this.close();
    return reply;
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #exchange(socket: Socket, bytes: Buffer, noReplyBody: boolean, timeoutMs: number): Promise<HostileReply> {
    return new Promise((resolve) => {
      let received: Buffer = Buffer.alloc(0);
      const finish = (outcome: HostileReply['outcome']) => {
        clearTimeout(timer);
        socket.off('data', read);
        socket.off('close', close);
        const end = received.indexOf('\r\n\r\n');
        const head = end === -1 ? '' : received.subarray(0, end).toString('latin1');
        const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0);
        resolve({ outcome, status, head, body: end === -1 ? received : received.subarray(end + 4) });
      };
      const close = () => finish(received.includes('\r\n\r\n') ? 'answered' : 'closed');
      const read = (chunk: Buffer) => {
        received = withoutInterim(Buffer.concat([received, chunk]));
        if (isComplete(received, noReplyBody)) finish('answered');
        else if (received.includes('\r\n\r\n')) {
          clearTimeout(timer);
          timer = setTimeout(() => finish('streaming'), streamMs);
        }
      };
      let timer = setTimeout(() => finish('hung'), timeoutMs);
      socket.on('data', read);
      socket.once('close', close);
      socket.write(bytes);
    });
  }
}

function withoutInterim(reply: Buffer): Buffer {
  const end = reply.indexOf('\r\n\r\n');
  return end !== -1 && /^HTTP\/1\.1 1\d\d/.test(reply.subarray(0, 12).toString('latin1'))
    ? reply.subarray(end + 4)
    : reply;
}

function isComplete(reply: Buffer, noBody: boolean): boolean {
  const end = reply.indexOf('\r\n\r\n');
  if (end === -1) return false;
  const head = reply.subarray(0, end).toString('latin1');
  if (noBody || /^HTTP\/1\.1 (204|304)/.test(head)) return true;
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) return reply.length >= end + 4 + Number(length);
  if (/\r\ntransfer-encoding: *chunked/i.test(head)) return reply.subarray(-7).toString('latin1').endsWith('0\r\n\r\n');
  return false;
}
