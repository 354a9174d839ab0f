import { type Duplex, Writable } from 'node:stream';
import { WebSocket } from 'ws';

/** The protocol that carries connections to ports: two channels for each, the first message of each with the port's number. */
export const portProtocols = ['v4.channel.k8s.io'];

/** Connects a WebSocket to ports of a pod. It has no end of one direction alone: when a port's side ends, so does everything. */
export function servePorts(socket: WebSocket, ports: readonly number[], open: (port: number) => Promise<Duplex>): void {
  socket.on('error', () => {});
  socket.pause();
  const opened = new Map<number, Duplex>();
  socket.once('close', () => {
    for (const connection of opened.values()) connection.destroy();
  });
  socket.on('message', (data: Buffer) => toPort(socket, opened.get(data[0] ?? 0), data.subarray(1)));
  for (const [index, port] of ports.entries()) {
    for (const channel of [index * 2, index * 2 + 1]) socket.send(Buffer.of(channel, port & 255, port >> 8));
  }
  const opening = ports.map(async (port, index) => {
    const channel = index * 2;
    try {
      const connection = await open(port);
      connection.on('error', (error) => refuse(socket, channel + 1, error));
      opened.set(channel, connection);
      if (socket.readyState !== WebSocket.OPEN) connection.destroy();
      connection.pipe(toCaller(socket, channel)).once('finish', () => end(socket));
    } catch (error) {
      refuse(socket, channel + 1, error);
    }
  });
  void Promise.all(opening).then(() => socket.resume());
}

function toPort(socket: WebSocket, connection: Duplex | undefined, content: Buffer): void {
  if (connection?.writable !== true || content.length === 0 || connection.write(content)) return;
  socket.pause();
  const goOn = () => {
    connection.off('drain', goOn);
    connection.off('close', goOn);
    socket.resume();
  };
  connection.on('drain', goOn);
  connection.on('close', goOn);
}

function toCaller(socket: WebSocket, channel: number): Writable {
  const connection = new Writable({
    write: (chunk: Buffer, _encoding, done) => socket.send(Buffer.concat([Buffer.of(channel), chunk]), done),
  });
  connection.on('error', () => socket.terminate());
  return connection;
}

function refuse(socket: WebSocket, channel: number, error: unknown): void {
  if (socket.readyState !== WebSocket.OPEN) return;
  const reason = error instanceof Error ? error.message : String(error);
  socket.send(Buffer.concat([Buffer.of(channel), Buffer.from(reason)]));
  end(socket);
}

/** The caller's answer to the end has to be read, also when nothing was that is for a port. */
function end(socket: WebSocket): void {
  socket.resume();
  socket.close(1000);
}
