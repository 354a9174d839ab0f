import { Readable, type Writable } from 'node:stream';
import type { StreamRequest, TerminalSize } from '@keelson/container-runtime';
import type { ChannelSocket } from './channel-socket.ts';
import { endMessage, type ProcessEnd, type ProtocolVersion, type RemoteProcess } from './remote-process.ts';
import { TerminalSizes } from './terminal-sizes.ts';

const Channel = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;

/** Maximum unread bytes for the process before reading of the connection pauses. */
const inboxBytes = 64 * 1024;

/**
 * A process over a WebSocket with the protocols `channel.k8s.io`. Only version 5 can close standard input separately.
 */
export class WebSocketProcess implements RemoteProcess {
  readonly stdin?: Readable;
  readonly stdout?: Writable;
  readonly stderr?: Writable;
  readonly closed: Promise<void>;
  readonly #channels: ChannelSocket;
  readonly #version: ProtocolVersion;
  readonly #sizes = new TerminalSizes();
  #inputEnded = false;

  constructor(channels: ChannelSocket, version: ProtocolVersion, request: StreamRequest) {
    this.#channels = channels;
    this.#version = version;
    this.closed = channels.closed;
    if (request.stdin) {
      this.stdin = new Readable({ highWaterMark: inboxBytes, read: () => channels.resume() });
      this.stdin.on('error', () => {});
      void channels.closed.then(() => this.stdin?.destroy());
    }
    if (request.stdout) this.stdout = channels.writer(Channel.stdout);
    if (request.stderr) this.stderr = channels.writer(Channel.stderr);
    channels.onMessage((channel, content) => this.#receive(channel, content));
    channels.resume();
    // An empty message on the first readable channel reports to the client that the connection is established.
    const first = request.stdout ? Channel.stdout : request.stderr ? Channel.stderr : Channel.error;
    channels.send(first, Buffer.alloc(0));
  }

  onResize(resize: (size: TerminalSize) => void): void {
    this.#sizes.listen(resize);
  }

  async finish(end: ProcessEnd): Promise<void> {
    const message = endMessage(this.#version, end);
    if (message !== '') this.#channels.send(Channel.error, Buffer.from(message));
    await this.#channels.close();
  }

  #receive(channel: number, content: Buffer): void {
    if (channel === Channel.stdin) this.#input(content);
    else if (channel === Channel.resize) this.#sizes.receive(content);
    else if (channel === Channel.close && this.#version >= 5 && content[0] === Channel.stdin) this.#input(null);
  }

  #input(content: Buffer | null): void {
    const { stdin } = this;
    if (stdin === undefined || stdin.destroyed || this.#inputEnded || content?.length === 0) return;
    this.#inputEnded = content === null;
    if (!stdin.push(content) && content !== null) this.#channels.pause();
  }
}
