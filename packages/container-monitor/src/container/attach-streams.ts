import { constants, type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { type ProcessStreams, RuntimeError, type StreamRequest } from '@keelson/container-runtime';
import type { ContainerContext } from './container-context.ts';
import type { MonitoredContainer } from './monitored-container.ts';

/** Connects to the streams of the container's first process: new output, and standard input if it was kept open. */
export async function attachStreams(
  container: MonitoredContainer,
  { state, keeper }: ContainerContext,
  request: StreamRequest,
): Promise<ProcessStreams> {
  const { config, id } = container.record;
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
  // A container that has ended has no input to close.
  const closeInput = () => keeper.request('closeStdin', id).catch(() => {});
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  const openInput = () => openStdin(join(state.container(id), 'stdin'), config.stdinOnce ? closeInput : undefined);
  const stdin = request.stdin
    ? await openInput().catch((error: unknown) => {
        socket.destroy();
        throw error;
      })
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
