import { closeSync, writeSync } from 'node:fs';
import { connect } from 'node:net';

/**
 * Program that runs in the network namespace of a pod and connects its standard streams with a port. It writes a byte
 * to file descriptor 3 when the connection is established.
 */
const port = Number(process.argv[2]);
const socket = connect({ port, host: 'localhost', allowHalfOpen: true, autoSelectFamily: true });
socket.once('error', () => process.exit(1));
socket.once('connect', () => {
  writeSync(3, '\n');
  closeSync(3);
  process.stdin.pipe(socket);
  socket.pipe(process.stdout);
  process.stdout.on('error', () => process.exit(0));
});
socket.once('close', () => process.exit(0));
