import { closeSync, writeSync } from 'node:fs';
import { connect } from 'node:net';

/**
 * Runs inside a pod's network: connects its standard streams with a port. A byte on file 3 says that the connection is
 * there.
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
