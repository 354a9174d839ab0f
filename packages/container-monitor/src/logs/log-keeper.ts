import { existsSync, openSync, readdirSync, rmSync, watch } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { LogStream, type OutputListener } from './log-stream.ts';

/**
 * The process that reads the output of all containers of a state directory. It outlives the runtime. If it dies, output
 * stays in the pipes until the runtime has started another keeper. It exits when there are neither running containers
 * nor connections.
 *
 * A request is a line of JSON, `{ op, id }`; the answer is `{ error? }`. After `attach`, the connection carries output:
 * one byte for the stream (1 or 2), four bytes length (big endian), then the content.
 */
const [, , state = ''] = process.argv;
const idleMs = 500;
const exitPollMs = 10_000;

const streams = new Map<string, LogStream>();
const connections = new Set<Socket>();
let idle: NodeJS.Timeout | undefined;

function keep(id: string): void {
  if (streams.has(id) || existsSync(join(state, 'run', `${id}.logged`))) return;
  const stream = new LogStream(state, id);
  streams.set(id, stream);
  if (stream.endIfExited()) streams.delete(id);
}

/** Ends the streams of exited containers. Polled as well, because file events may be missed. */
function processExits(): void {
  // The state directory was removed.
  if (!existsSync(join(state, 'run'))) process.exit(0);
  for (const [id, stream] of streams) {
    if (stream.endIfExited()) streams.delete(id);
  }
  leaveIfIdle();
}

function leaveIfIdle(): void {
  clearTimeout(idle);
  if (streams.size > 0 || connections.size > 0) return;
  // Not injected: the process of the log keeper runs in real time, and this timer keeps it alive.
  idle = setTimeout(() => process.exit(0), idleMs);
}

function attach(socket: Socket, stream: LogStream): void {
  const listener: OutputListener = {
    take(name, chunk) {
      const head = Buffer.allocUnsafe(5);
      head[0] = name === 'stdout' ? 1 : 2;
      head.writeUInt32BE(chunk.length, 1);
      // A slow client loses output; waiting for it would stop the container.
      if (socket.writableLength < 1 << 20) socket.write(Buffer.concat([head, chunk]));
    },
    end: () => void socket.end(),
  };
  stream.listeners.add(listener);
  socket.on('close', () => stream.listeners.delete(listener));
}

function answer(socket: Socket, line: string): void {
  let error: string | undefined;
  try {
    const { op, id } = JSON.parse(line) as { op: string; id: string };
    const stream = streams.get(id);
    if (op === 'keep') keep(id);
    else if (op === 'drop') {
      streams.delete(id);
      stream?.drop();
    } else if (stream === undefined) error = 'not kept';
    else if (op === 'reopen') stream.reopen();
    else if (op === 'closeStdin') stream.closeStdin();
    else if (op === 'attach') attach(socket, stream);
    else error = `unknown request "${op}"`;
  } catch (failure) {
    error = failure instanceof Error ? failure.message : String(failure);
  }
  socket.write(`${JSON.stringify({ error })}\n`);
}

const server = createServer((socket) => {
  connections.add(socket);
  clearTimeout(idle);
  let rest = '';
  socket.setEncoding('utf8');
  socket.on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) answer(socket, line);
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    connections.delete(socket);
    leaveIfIdle();
  });
});

// Signals to the process group of the runtime must not end the keeper.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

watch(join(state, 'run'), (_event, name) => {
  if (name?.endsWith('.exit')) processExits();
});
setInterval(processExits, exitPollMs);
for (const name of readdirSync(join(state, 'run'))) {
  const [id = '', kind] = name.split('.');
  if (kind !== 'monitor') continue;
  try {
    keep(id);
  } catch {
    // The container is being removed.
  }
}
// The process that owns the lock (see KeeperClient) is the only keeper, so an existing socket is stale. The address
// contains a file descriptor instead of the path, because the kernel limits it to 107 bytes.
const folder = openSync(join(state, 'keeper'), 'r');
rmSync(join(state, 'keeper', 'socket'), { force: true });
server.listen(`/proc/self/fd/${folder}/socket`, leaveIfIdle);
