import { Duplex } from 'node:stream';
import type { ChannelSocket } from './channel-socket.ts';
import { joinPort } from './join-port.ts';
import { type PortSource, portProblem } from './spdy-ports.ts';

/** Maximum unread bytes for a port before reading of the connection pauses. */
const inboxBytes = 64 * 1024;

/**
 * Serves one connection to each port over a WebSocket: channel 2*i carries the data of the i-th port and 2*i+1 its
 * errors. The first message of each channel is the number of its port. Directions cannot end separately. The WebSocket
 * is closed when all ports are closed.
 */
export async function serveWebSocketPorts(
  channels: ChannelSocket,
  ports: readonly number[],
  source: PortSource,
): Promise<void> {
  const inboxes = ports.map((_, index) => new PortChannel(channels, 2 * index));
  channels.onMessage((channel, content) => {
    const inbox = channel % 2 === 0 ? inboxes[channel / 2] : undefined;
    if (inbox !== undefined && !inbox.arrived(content)) channels.pause();
  });
  channels.resume();
  for (const [index, port] of ports.entries())
    for (const channel of [2 * index, 2 * index + 1]) channels.send(channel, Buffer.of(port & 0xff, port >>> 8));
  await Promise.all(
    ports.map(async (port, index) => {
      try {
        await joinPort(inboxes[index] as PortChannel, await source.open(port));
      } catch (error) {
        channels.send(2 * index + 1, Buffer.from(portProblem(port, source.label, error)));
      }
      // Data that the client sends after the port was closed is discarded.
      inboxes[index]?.resume();
    }),
  );
  await channels.close();
}

/** The client's side of the connection to one port. */
class PortChannel extends Duplex {
  readonly #channels: ChannelSocket;
  readonly #number: number;

  constructor(channels: ChannelSocket, number: number) {
    super({ readableHighWaterMark: inboxBytes });
    this.#channels = channels;
    this.#number = number;
    this.on('error', () => {});
    void channels.closed.then(() => this.destroy());
  }

  /** Buffers received content; false when reading must pause. */
  arrived(content: Buffer): boolean {
    return this.destroyed || content.length === 0 || this.push(content);
  }

  override _read(): void {
    this.#channels.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#channels.send(this.#number, chunk, done);
  }
}
