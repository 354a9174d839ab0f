import { spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import { RuntimeError } from '@keelson/container-runtime';
import { addAbortListener, removeAbortListener } from '@keelson/core/runtime';

/** Program in the network namespace of a pod: connects to a port, writes `+`, then copies bytes in both directions. */
const relay = `
const socket = require('node:net').connect({ port: Number(process.argv[1]), host: '127.0.0.1', allowHalfOpen: true });
socket.once('error', () => process.exit(1));
socket.once('connect', () => {
  process.stdout.write('+');
  process.stdin.pipe(socket);
  socket.pipe(process.stdout);
});
`;

/**
 * Connects to a port on loopback in the network namespace of a process. A small Node process in that namespace relays
 * the connection, because Node cannot enter a namespace within its own process. @throws `Unavailable` when no process
 * listens on the port
 */
export function forwardPort(pid: number, port: number, signal: AbortSignal | undefined): Promise<Duplex> {
  const child = spawn('nsenter', [`--net=/proc/${pid}/ns/net`, '--', process.execPath, '-e', relay, String(port)], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: {},
  });
  const { stdin, stdout } = child;
  stdin.on('error', () => {}); // the other side has closed the connection
  const end = () => child.kill('SIGKILL');
  addAbortListener(signal, end);
  return new Promise((resolve, reject) => {
    const fail = (cause?: Error) =>
      reject(
        new RuntimeError('Unavailable', `cannot connect to port ${port} of the pod`, ...(cause ? [{ cause }] : [])),
      );
    child.once('error', fail);
    child.once('exit', () => fail());
    stdout.once('readable', () => {
      if (stdout.read(1) === null) return;
      removeAbortListener(signal, end);
      const duplex = Duplex.from({ readable: stdout, writable: stdin });
      duplex.once('close', end);
      resolve(duplex);
    });
  });
}
