import { constants, type FileHandle, open } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type Duplex, PassThrough, Writable } from 'node:stream';
import { type ExecRequest, type ProcessStreams, RuntimeError, type StreamRequest } from '@keelson/container-runtime';
import type { ProcessContainer } from '../container/process-container.ts';
import type { KeeperClient } from '../logs/keeper-client.ts';
import { signalProcess } from '../machine/proc.ts';
import { exitCodeOf, spawnInside } from './run-command.ts';

/** A command in the container with its ends in the caller's hands. @throws `Unsupported` with a terminal, `StartFailed` */
export async function execStreams(container: ProcessContainer, pid: number, request: ExecRequest): Promise<ProcessStreams> {
  if (request.tty) throw new RuntimeError('Unsupported', 'the process runtime has no terminals');
  const pipe = (wanted: boolean) => (wanted ? 'pipe' : 'ignore');
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
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) signalProcess(-child.pid, 'SIGKILL');
      stdin?.destroy();
      stdout?.destroy();
      stderr?.destroy();
    },
  };
}

/** The container's own ends: output from now on, and its standard input if it was kept open. */
export async function attachStreams(
  container: ProcessContainer,
  folder: string,
  keeper: KeeperClient,
  request: StreamRequest,
): Promise<ProcessStreams> {
  const { config, id } = container.record;
  if (request.tty) throw new RuntimeError('Unsupported', 'the process runtime has no terminals');
  if (request.stdin && !config.stdin)
    throw new RuntimeError('InvalidState', `container "${id}" does not keep its standard input open`);
  const socket = await keeper.attach(id);
  const stdout = request.stdout ? new PassThrough() : undefined;
  const stderr = request.stderr ? new PassThrough() : undefined;
  let rest = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
      const end = 5 + rest.readUInt32BE(1);
      const target = rest[0] === 1 ? stdout : stderr;
      if (target?.write(rest.subarray(5, end)) === false) {
        socket.pause();
        target.once('drain', () => socket.resume());
      }
      rest = rest.subarray(end);
    }
  });
  socket.resume();
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  const stdin = request.stdin
    ? await openStdin(join(folder, 'stdin'), config.stdinOnce ? () => keeper.request('closeStdin', id) : undefined)
    : undefined;
  void closed.then(() => {
    stdout?.end();
    stderr?.end();
  });
  return {
    ...(stdin && { stdin }),
    ...(stdout && { stdout }),
    ...(stderr && { stderr }),
    ended: closed.then(() => container.refresh()).then(() => ({ exitCode: container.status().exitCode ?? 0 })),
    close: () => {
      socket.destroy();
      stdin?.destroy();
    },
  };
}

async function openStdin(path: string, onEnd: (() => Promise<void>) | undefined): Promise<Writable> {
  const file: FileHandle = await open(path, constants.O_WRONLY);
  const finish = async () => {
    await file.close();
    await onEnd?.();
  };
  return new Writable({
    write: (chunk: Buffer, _encoding, callback) => {
      file.writeFile(chunk).then(() => callback(), callback);
    },
    destroy: (error, callback) => {
      finish().then(
        () => callback(error),
        (failure: Error) => callback(error ?? failure),
      );
    },
  });
}

/** A connection to a port of the pod, which has the machine's network. @throws `Unavailable` when nobody listens. */
export function forwardPort(port: number, host = '127.0.0.1'): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host, allowHalfOpen: true });
    socket.once('connect', () => resolve(socket));
    socket.once('error', (error) =>
      reject(new RuntimeError('Unavailable', `cannot connect to port ${port} of the pod`, { cause: error })),
    );
  });
}
