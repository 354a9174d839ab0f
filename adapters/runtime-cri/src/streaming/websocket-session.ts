import { Readable, Writable } from 'node:stream';
import type { StreamRequest, TerminalSize } from '@keelson/container-runtime';
import { addAbortListener, removeAbortListener } from '@keelson/core/runtime';
import { WebSocket } from 'ws';
import type { PinnedTls } from '../connection/cri-connection.ts';
import { parseSessionEnd, type RemoteSession, type SessionEnd } from './remote-session.ts';
import { streamTls } from './stream-tls.ts';

/** Number of the channel, which is the first byte of each message. */
const Channel = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;
export const halfClosingProtocol = 'v5.channel.k8s.io';
const protocols = [halfClosingProtocol, 'v4.channel.k8s.io'];

export interface OpenedWebSocket {
  readonly session: RemoteSession;
  /** Whether one channel can be closed without closing the connection. */
  readonly halfCloses: boolean;
}

/** Opens a session at `url`. @throws Error when the server does not respond or supports none of the protocols */
export async function openWebSocketSession(
  url: string,
  request: StreamRequest,
  signal: AbortSignal | undefined,
  tls?: PinnedTls,
): Promise<OpenedWebSocket> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), protocols, {
    perMessageDeflate: false,
    ...streamTls(url, tls),
  });
  // The session exists before the handshake ends, because messages may arrive together with its response.
  const session = new WebSocketSession(socket, request);
  await new Promise<void>((resolve, reject) => {
    const onAbort = () => socket.terminate();
    addAbortListener(signal, onAbort);
    if (signal?.aborted) onAbort();
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('the streaming server closed the connection')));
    socket.once('open', () => {
      removeAbortListener(signal, onAbort);
      resolve();
    });
  });
  return { session, halfCloses: socket.protocol === halfClosingProtocol };
}

class WebSocketSession implements RemoteSession {
  readonly stdin?: Writable;
  readonly stdout?: Readable;
  readonly stderr?: Readable;
  readonly end: Promise<SessionEnd>;
  readonly #socket: WebSocket;
  #status = '';
  #hasStatus = false;

  constructor(socket: WebSocket, request: StreamRequest) {
    this.#socket = socket;
    // A paused WebSocket is resumed even after the server closed it, because unread messages precede the close.
    const read = () => socket.resume();
    if (request.stdin) this.stdin = this.#input();
    const destroy = (error: Error | null, done: (error?: Error | null) => void) => {
      read();
      done(error);
    };
    if (request.stdout) this.stdout = new Readable({ read, destroy });
    if (request.stderr) this.stderr = new Readable({ read, destroy });
    socket.on('message', (data: Buffer) => this.#onMessage(data));
    socket.on('error', () => {});
    this.end = new Promise((resolve) => {
      socket.on('close', () => {
        this.stdout?.push(null);
        this.stderr?.push(null);
        this.stdin?.destroy();
        resolve(this.#hasStatus ? parseSessionEnd(this.#status) : undefined);
      });
    });
  }

  resize({ width, height }: TerminalSize): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#send(Channel.resize, Buffer.from(JSON.stringify({ Width: width, Height: height })));
  }

  close(): void {
    this.#socket.terminate();
  }

  #onMessage(data: Buffer): void {
    const content = data.subarray(1);
    const channel = data[0];
    if (channel === Channel.error) {
      // The first message of every channel is an empty one that opens it.
      if (content.length === 0) return;
      this.#hasStatus = true;
      this.#status += content.toString();
    } else if (content.length > 0) {
      const target = channel === Channel.stdout ? this.stdout : channel === Channel.stderr ? this.stderr : undefined;
      if (target?.destroyed === false && !target.push(content)) this.#socket.pause();
    }
  }

  #input(): Writable {
    return new Writable({
      write: (chunk: Buffer, _encoding, done) => this.#send(Channel.stdin, chunk, done),
      // Before v5 a client can end the input only by closing the session, so the end is not sent.
      final: (done) => {
        if (this.#socket.protocol === halfClosingProtocol) this.#send(Channel.close, Buffer.of(Channel.stdin), done);
        else done();
      },
    });
  }

  #send(channel: number, content: Buffer, done: (error?: Error | null) => void = () => {}): void {
    this.#socket.send(Buffer.concat([Buffer.of(channel), content]), done);
  }
}
