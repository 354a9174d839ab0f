import { fdatasyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

/**
 * What watch-floor.c does, for machines without a C compiler: the cheapest fan-out of a Node program. argv[2]: bytes of
 * a frame; the others: see there.
 */
const frame = Buffer.alloc(Number(process.argv[2] ?? 1560), 'x');
const [logPath = '', certificate, key] = process.argv.slice(3);
const log = logPath === '' ? undefined : openSync(logPath, 'w');
const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
const watchers = new Set<Socket>();

const accept = (socket: Socket) => {
  socket.on('error', () => {});
  socket.on('close', () => watchers.delete(socket));
  socket.on('data', (request) => {
    if (request.toString('latin1', 0, 1) === 'G') {
      socket.write(head);
      watchers.add(socket);
      return;
    }
    if (log !== undefined) {
      writeSync(log, frame, 0, frame.length, 0);
      fdatasyncSync(log);
    }
    for (const watcher of watchers) watcher.write(frame);
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
  });
};
const server =
  certificate === undefined || key === undefined
    ? createServer({ noDelay: true }, accept)
    : createTlsServer({ noDelay: true, cert: readFileSync(certificate), key: readFileSync(key) }, accept);
server.listen(0, '127.0.0.1', () => process.stdout.write(`ready ${(server.address() as AddressInfo).port}\n`));
process.once('SIGTERM', () => process.exit(0));
