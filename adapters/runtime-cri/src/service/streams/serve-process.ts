import { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { ProcessStreams, TerminalSize } from '@keelson/container-runtime';
import { WebSocket } from 'ws';

/** First byte of each message. */
const Channel = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;

/** Protocols that carry a process; with the first of them input can end before the session does. */
export const processProtocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io'];

/** Connects a WebSocket to the ends of a process that are being opened. The last message says how the process ended. */
export async function serveProcess(socket: WebSocket, opening: Promise<ProcessStreams>): Promise<void> {
  socket.on('error', () => {});
  // Input may come before there is somebody to read it.
  socket.pause();
  try {
    const streams = await opening;
    socket.once('close', () => streams.close());
    if (socket.readyState !== WebSocket.OPEN) streams.close();
    socket.on('message', (data: Buffer) => toProcess(socket, streams, data));
    socket.resume();
    const outputs = [toCaller(socket, streams.stdout, Channel.stdout), toCaller(socket, streams.stderr, Channel.stderr)];
    const { exitCode } = await streams.ended;
    await Promise.all(outputs);
    streams.close();
    tell(socket, endOf(exitCode));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    tell(socket, { status: 'Failure', reason: 'InternalError', message });
  }
}

function toProcess(socket: WebSocket, streams: ProcessStreams, data: Buffer): void {
  const { stdin } = streams;
  const content = data.subarray(1);
  if (data[0] === Channel.stdin && content.length > 0 && stdin?.writable) {
    if (stdin.write(content)) return;
    socket.pause();
    const goOn = () => {
      stdin.off('drain', goOn);
      stdin.off('close', goOn);
      socket.resume();
    };
    stdin.on('drain', goOn);
    stdin.on('close', goOn);
  } else if (data[0] === Channel.close && content[0] === Channel.stdin) stdin?.end();
  else if (data[0] === Channel.resize) {
    const size = sizeOf(content);
    if (size !== undefined) streams.resize?.(size);
  }
}

/** Resolves when all output was given to the connection, at its pace, or can no longer be. */
async function toCaller(socket: WebSocket, output: ProcessStreams['stdout'], channel: number): Promise<void> {
  if (output === undefined) return;
  const connection = new Writable({
    write: (chunk: Buffer, _encoding, done) => socket.send(Buffer.concat([Buffer.of(channel), chunk]), done),
  });
  connection.on('error', () => output.destroy());
  output.pipe(connection);
  await finished(output, { writable: false }).catch(() => {});
  if (!output.readableEnded) return;
  await finished(connection).catch(() => {});
}

function sizeOf(content: Buffer): TerminalSize | undefined {
  try {
    const { Width, Height } = JSON.parse(content.toString()) as { Width?: unknown; Height?: unknown };
    return typeof Width === 'number' && typeof Height === 'number' ? { width: Width, height: Height } : undefined;
  } catch {
    return undefined;
  }
}

/** A Kubernetes Status, as far as it says how a process ended. */
function endOf(exitCode: number): object {
  if (exitCode === 0) return { status: 'Success' };
  return {
    status: 'Failure',
    reason: 'NonZeroExitCode',
    message: `command terminated with exit code ${exitCode}`,
    details: { causes: [{ reason: 'ExitCode', message: String(exitCode) }] },
  };
}

function tell(socket: WebSocket, status: object): void {
  if (socket.readyState !== WebSocket.OPEN) return;
  socket.send(Buffer.concat([Buffer.of(Channel.error), Buffer.from(JSON.stringify(status))]));
  // The caller's answer to the end has to be read, also when no input was any more.
  socket.resume();
  socket.close(1000);
}
