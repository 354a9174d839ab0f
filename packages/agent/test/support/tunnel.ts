import { once } from 'node:events';
import { request } from 'node:https';
import { Duplex } from 'node:stream';
import type { ExecutionContext } from 'ava';

const binaryFrame = 0x82;
const maskFlag = 0x80;

/** Frame of a client, with a mask of noughts, which changes nothing. */
function frame(content: Buffer): Buffer {
  const header = Buffer.alloc(14);
  header[0] = binaryFrame;
  header[1] = maskFlag | 127;
  header.writeBigUInt64BE(BigInt(content.length), 2);
  return Buffer.concat([header, content]);
}

/**
 * The contents of the binary messages of a WebSocket, as one stream. Its protocol may have any name, while the library
 * keeps to names without a slash.
 */
export async function openTunnel(t: ExecutionContext, port: number, path: string, protocol: string) {
  const outgoing = request({
    ...{ host: '127.0.0.1', port, path, rejectUnauthorized: false, agent: false },
    headers: {
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Key': Buffer.alloc(16).toString('base64'),
      'Sec-WebSocket-Protocol': protocol,
    },
  });
  outgoing.end();
  const [response, socket] = await once(outgoing, 'upgrade');
  t.teardown(() => socket.destroy());
  let rest: Buffer = Buffer.alloc(0);
  const stream = new Duplex({
    read() {},
    write: (chunk: Buffer, _encoding, done) => socket.write(frame(chunk), done),
  });
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const short = (rest[1] ?? 0) & 0x7f;
      const begin = short < 126 ? 2 : short === 126 ? 4 : 10;
      if (rest.length < begin) return;
      const length = short < 126 ? short : short === 126 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2));
      if (rest.length < begin + length) return;
      if (rest[0] === binaryFrame) stream.push(rest.subarray(begin, begin + length));
      rest = rest.subarray(begin + length);
    }
  });
  socket.on('close', () => stream.push(null));
  return { stream, protocol: response.headers['sec-websocket-protocol'] as string };
}
