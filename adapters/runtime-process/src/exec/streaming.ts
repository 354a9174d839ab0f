import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { signalProcess } from '@keelson/container-host';
import { exitCodeOf } from '@keelson/container-monitor';
import { type ExecRequest, type ProcessStreams, RuntimeError } from '@keelson/container-runtime';
import type { ProcessContainer } from '../container/process-container.ts';
import { spawnInside } from './run-command.ts';

/** Runs a command without a terminal and returns its streams. @throws RuntimeError `StartFailed`, `InvalidArgument` */
export async function execStreams(
  container: ProcessContainer,
  pid: number,
  request: ExecRequest,
): Promise<ProcessStreams> {
  const pipe = (enabled: boolean) => (enabled ? 'pipe' : 'ignore');
  const stdio = [pipe(request.stdin), pipe(request.stdout), pipe(request.stderr)] as const;
  const child = await spawnInside(container.record.plan, pid, request.command, stdio);
  const { stdin, stdout, stderr } = child;
  stdin?.on('error', () => {}); // the command may end before it has read everything
  const ended = new Promise<{ exitCode: number }>((resolve) => {
    child.on('error', () => resolve({ exitCode: 126 }));
    child.on('exit', (code, signal) => resolve({ exitCode: exitCodeOf(code, signal) }));
  });
  return {
    ...(stdin !== null && { stdin }),
    ...(stdout !== null && { stdout }),
    ...(stderr !== null && { stderr }),
    ended,
    close: () => {
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
        signalProcess(-child.pid, 'SIGKILL');
      stdin?.destroy();
      stdout?.destroy();
      stderr?.destroy();
    },
  };
}

/**
 * Connects to a port of the pod, which uses the network of the machine. @throws RuntimeError `Unavailable` when no
 * process listens
 */
export function forwardPort(port: number, host = '127.0.0.1'): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host, allowHalfOpen: true });
    socket.once('connect', () => resolve(socket));
    socket.once('error', (error) =>
      reject(new RuntimeError('Unavailable', `cannot connect to port ${port} of the pod`, { cause: error })),
    );
  });
}
