import { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { addAbortListener, removeAbortListener } from '@keelson/core/runtime';
import { WebSocket } from 'ws';
import type { PinnedTls } from '../connection/cri-connection.ts';
import { openSpdy } from './spdy-connection.ts';
import { streamTls } from './stream-tls.ts';

/** Connects to a port of a pod by SPDY, where each direction ends separately. @throws UpgradeRefused, Error */
export async function forwardBySpdy(
  url: string,
  port: number,
  signal: AbortSignal | undefined,
  tls?: PinnedTls,
): Promise<Duplex> {
  const connection = await openSpdy(url, 'portforward.k8s.io', signal, tls);
  const names = { port: String(port), requestid: '0' };
  const error = connection.open({ streamtype: 'error', ...names });
  const data = connection.open({ streamtype: 'data', ...names });
  for (const stream of [error, data]) stream.on('error', () => {});
  error.end();
  // The error stream contains the reason why the connection to the port failed.
  data.endsAfter = text(error).then(
    (message) => message !== '' && data.destroy(new Error(message.trim())),
    () => {},
  );
  data.once('close', () => connection.close());
  return data;
}

const Channel = { data: 0, error: 1 } as const;

/** Connects by WebSocket, where the end of one direction closes the whole connection. @throws Error */
export async function forwardByWebSocket(
  url: string,
  port: number,
  signal: AbortSignal | undefined,
  tls?: PinnedTls,
): Promise<Duplex> {
  const address = new URL(url.replace(/^http/, 'ws'));
  address.searchParams.set('port', String(port));
  const socket = new WebSocket(address, ['v4.channel.k8s.io'], { perMessageDeflate: false, ...streamTls(url, tls) });
  const stream = new Duplex({
    read: () => socket.resume(),
    write: (chunk: Buffer, _encoding, done) => socket.send(Buffer.concat([Buffer.of(Channel.data), chunk]), done),
    destroy: (error, done) => {
      socket.terminate();
      done(error);
    },
  });
  // Prevents an unhandled error before the caller listens; reading the stream reports the error.
  stream.on('error', () => {});
  // The first message of each channel contains the number of the port.
  const started = new Set<number>();
  socket.on('message', (message: Buffer) => {
    const channel = message[0] ?? 0;
    const content = message.subarray(started.has(channel) ? 1 : 3);
    started.add(channel);
    if (content.length === 0) return;
    if (channel === Channel.error) stream.destroy(new Error(content.toString().trim()));
    else if (!stream.push(content)) socket.pause();
  });
  socket.on('close', () => stream.push(null));
  await new Promise<void>((resolve, reject) => {
    const onAbort = () => socket.terminate();
    addAbortListener(signal, onAbort);
    if (signal?.aborted) onAbort();
    socket.on('error', reject);
    socket.once('close', () => reject(new Error('the streaming server closed the connection')));
    socket.once('open', () => {
      removeAbortListener(signal, onAbort);
      resolve();
    });
  });
  return stream;
}
