import { createServer } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { status } from '@grpc/grpc-js';

/** A stranger has this long to hear why it is refused. */
const refusalMs = 2000;

/** Answers whatever a connection of somebody else asks with one sentence, in the protocol it speaks, and ends it. */
export function refuseStranger(socket: TLSSocket, sentence: string): void {
  socket.setTimeout(refusalMs, () => socket.destroy());
  const tooLate = setTimeout(() => socket.destroy(), refusalMs);
  socket.once('close', () => clearTimeout(tooLate));
  if (socket.alpnProtocol === 'h2') refuseCalls(socket, sentence);
  else {
    const length = Buffer.byteLength(sentence) + 1;
    const head = `HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: ${length}\r\n\r\n`;
    // What it asks is read and thrown away: a socket that is closed with unread bytes loses the answer.
    socket.resume();
    socket.end(`${head}${sentence}\n`);
  }
}

function refuseCalls(socket: TLSSocket, sentence: string): void {
  const server = createServer({ settings: { maxConcurrentStreams: 1 } });
  server.on('sessionError', () => {});
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    const refusal = { 'grpc-status': String(status.UNAUTHENTICATED), 'grpc-message': sentence };
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...refusal }, { endStream: true });
    stream.session?.close();
  });
  server.emit('connection', socket);
}
