import type { Socket } from 'node:net';
import type { Random } from '@keelson/conformance';
import { type HostileTarget, openSocket } from './hostile-client.ts';

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** A frame of HTTP/2 (RFC 9113, section 4.1). */
function frame(type: number, flags: number, stream: number, payload: Buffer, length = payload.length): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(length & 0xffffff, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([head, payload]);
}

/** Header block of `GET /readyz`: indexed fields of the static table and one literal (RFC 7541). */
const headerBlock = Buffer.concat([Buffer.from([0x82, 0x87, 0x41, 0x01, 0x61, 0x04, 0x07]), Buffer.from('/readyz')]);

const settingsFrame = frame(4, 0, 0, Buffer.alloc(0));

function randomBytes(random: Random, most: number): Buffer {
  return Buffer.from(Array.from({ length: random.below(most) }, () => random.below(256)));
}

/** A frame that is malformed, out of place, or one of a flood. */
function hostileFrame(random: Random, stream: number): Buffer {
  const uint32 = (value: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value >>> 0);
    return bytes;
  };
  switch (random.below(12)) {
    case 0:
      return frame(random.below(12), random.below(256), random.below(2 ** 31), randomBytes(random, 40));
    case 1:
      return frame(0, 1, random.pick([0, stream, stream + 1]), randomBytes(random, 200));
    case 2:
      return frame(1, random.pick([4, 5, 0]), random.pick([0, stream, 2]), randomBytes(random, 60));
    case 3:
      return Buffer.concat(Array.from({ length: 50 }, () => frame(9, 0, stream, randomBytes(random, 30))));
    case 4:
      return Buffer.concat([frame(1, 5, stream, headerBlock), frame(3, 0, stream, uint32(random.below(20)))]);
    case 5:
      return frame(
        4,
        random.below(2),
        0,
        Buffer.concat([Buffer.from([0, random.below(8)]), uint32(random.below(2 ** 32))]),
      );
    case 6:
      return Buffer.concat(
        Array.from({ length: 50 }, () => frame(6, 0, 0, Buffer.alloc(random.pick([0, 8, 8, 8, 9])))),
      );
    case 7:
      return frame(8, 0, random.pick([0, stream]), uint32(random.pick([0, 1, 2 ** 31 - 1])));
    case 8:
      return frame(2, 0, stream, Buffer.concat([uint32(stream), Buffer.from([255])]));
    case 9:
      return frame(5, 4, stream, Buffer.concat([uint32(2), headerBlock]));
    case 10:
      return frame(1, 4, stream, headerBlock, random.below(2 ** 24));
    default:
      return Buffer.concat(Array.from({ length: 20 }, () => settingsFrame));
  }
}

/** Resolves when the socket has closed, or after the time. */
async function closedWithin(socket: Socket, ms: number): Promise<void> {
  if (socket.destroyed) return;
  await new Promise<void>((resolve) => {
    setTimeout(resolve, ms);
    socket.once('close', () => resolve());
  });
}

/** One HTTP/2 connection with valid frames between hostile ones; returns how many hostile frames were sent. */
export async function abuseHttp2(random: Random, target: HostileTarget): Promise<number> {
  const socket = await openSocket(target, 'h2');
  socket.resume();
  if (random.chance(0.9)) socket.write(Buffer.concat([preface, settingsFrame]));
  let sent = 0;
  for (let stream = 1; stream < 40 && !socket.destroyed; stream += 2) {
    if (random.chance(0.5)) socket.write(frame(1, random.pick([4, 5]), stream, headerBlock));
    socket.write(hostileFrame(random, stream));
    sent += 1;
    if (random.chance(0.2)) await new Promise((resolve) => setImmediate(resolve));
  }
  await closedWithin(socket, random.below(20));
  socket.destroy();
  return sent;
}

const partialRequests = [
  '',
  'G',
  'GET /api/v1/configmaps HTTP/1.1\r\n',
  'GET /api/v1/configmaps HTTP/1.1\r\nHost: 127.0.0.1\r\n',
  'POST /api/v1/namespaces/abused/configmaps HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{',
  'POST /api/v1/namespaces/abused/configmaps HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{',
  'GET /api/v1/configmaps?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n',
  'GET /api/v1/pods HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /api/v1/pods HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET',
];

/** Connections that stay incomplete at some step of the protocol, and end in different ways. */
export async function abuseSockets(random: Random, target: HostileTarget, count: number): Promise<number> {
  const sockets: Socket[] = [];
  for (let opened = 0; opened < count; opened += 1) {
    // Without TLS on a TLS port: bytes that are no handshake, or the beginning of one.
    const raw = target.tls !== undefined && random.chance(0.3);
    const { tls: _, ...plain } = target;
    const socket = await openSocket(raw ? plain : target);
    sockets.push(socket);
    if (raw) socket.write(random.chance(0.5) ? Buffer.from([0x16, 3, 1, 2, 0, 1, 0]) : randomBytes(random, 100));
    else socket.write(random.pick(partialRequests));
    if (random.chance(0.3)) socket.pause();
    else socket.resume();
    if (random.chance(0.2)) socket.end();
    // Only a TCP socket can be reset; one of TLS is destroyed below.
    if (random.chance(0.1) && !('encrypted' in socket)) socket.resetAndDestroy();
  }
  await new Promise((resolve) => setTimeout(resolve, 100));
  for (const socket of sockets) socket.destroy();
  return count;
}
