import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { Duplex, type Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { tool, toolPath } from '@keelson/container-host';
import { RuntimeError } from '@keelson/container-runtime';

const helper = fileURLToPath(import.meta.resolve('#port-forward-helper'));

/** Connects to a port of the machine. @throws RuntimeError `Unavailable` when no process listens */
export function forwardHere(port: number, host = '127.0.0.1'): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host, allowHalfOpen: true });
    socket.once('connect', () => resolve(socket));
    socket.once('error', (error) => reject(unreachable(port, error)));
  });
}

/**
 * Connects to a port in a network namespace, loopback included. A helper process forwards the data until the
 * connection ends.
 *
 * @throws RuntimeError `Unavailable` when no process listens
 */
export async function forwardInside(namespace: string, port: number): Promise<Duplex> {
  const args = [`--net=${namespace}`, '--', process.execPath, helper, String(port)];
  const child = spawn(tool('nsenter'), args, {
    stdio: ['pipe', 'pipe', 'ignore', 'pipe'],
    ...{ detached: true, cwd: '/', env: { PATH: toolPath } },
  });
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new RuntimeError('Internal', 'the helper process has no pipes');
  const connected = child.stdio[3] as Readable;
  await new Promise<void>((resolve, reject) => {
    connected.once('data', () => resolve());
    connected.once('error', () => {});
    child.once('error', (error) => reject(unreachable(port, error)));
    child.once('exit', () => reject(unreachable(port)));
  });
  connected.destroy();
  stdin.on('error', () => {}); // the peer may have closed the connection
  const stream = Duplex.from({ readable: stdout, writable: stdin });
  stream.once('close', () => child.kill('SIGKILL'));
  return stream;
}

function unreachable(port: number, cause?: unknown): RuntimeError {
  return new RuntimeError('Unavailable', `cannot connect to port ${port} of the pod`, { cause });
}
