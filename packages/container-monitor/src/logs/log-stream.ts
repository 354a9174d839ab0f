import { closeSync, constants, existsSync, openSync, readFileSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { LineWriter } from './line-writer.ts';

/** Maximum time for which an unterminated line is buffered. */
const flushAfterMs = 200;

/** An attached client. */
export interface OutputListener {
  take(stream: 'stdout' | 'stderr', chunk: Buffer): void;
  /** Called when no more output follows. */
  end(): void;
}

/** Copies the output of one container from its pipes to its log file and to the attached clients. */
export class LogStream {
  readonly id: string;
  readonly listeners = new Set<OutputListener>();
  readonly #folder: string;
  readonly #run: string;
  readonly #writer: LineWriter;
  readonly #pipes: { readonly stream: 'stdout' | 'stderr'; readonly fd: number; readonly socket: Socket }[] = [];
  #stdin: number | undefined;
  #flushing = false;

  constructor(state: string, id: string) {
    this.id = id;
    this.#folder = join(state, 'containers', id);
    this.#run = join(state, 'run');
    const { logPath } = JSON.parse(readFileSync(join(this.#folder, 'record.json'), 'utf8')) as { logPath?: string };
    this.#writer = new LineWriter(logPath);
    // The pipes are also opened for writing: otherwise a read would return end of file when no other process has opened
    // the pipe for writing.
    const open = (name: string) => openSync(join(this.#folder, name), constants.O_RDWR | constants.O_NONBLOCK);
    for (const stream of ['stdout', 'stderr'] as const) {
      const fd = open(stream);
      const socket = new Socket({ fd, readable: true, writable: false });
      socket.on('data', (chunk: Buffer) => this.#take(stream, chunk));
      socket.on('error', () => {});
      this.#pipes.push({ stream, fd, socket });
    }
    if (existsSync(join(this.#folder, 'stdin'))) this.#stdin = open('stdin');
  }

  reopen(): void {
    this.#writer.reopen();
  }

  /** Closes standard input. The container reads the end of file when no other process has the pipe open. */
  closeStdin(): void {
    if (this.#stdin !== undefined) closeSync(this.#stdin);
    this.#stdin = undefined;
  }

  /**
   * Ends the stream if the container has exited: reads the remaining output and releases the monitor. Returns whether
   * the container has exited.
   */
  endIfExited(): boolean {
    if (!existsSync(join(this.#run, `${this.id}.exit`))) return false;
    const buffer = Buffer.allocUnsafe(64 * 1024);
    for (const { stream, fd } of this.#pipes) {
      for (let length = readNow(fd, buffer); length > 0; length = readNow(fd, buffer)) {
        this.#take(stream, Buffer.from(buffer.subarray(0, length)));
      }
    }
    this.#writer.close();
    writeFileSync(join(this.#run, `${this.id}.logged`), '');
    releaseMonitor(join(this.#folder, 'done'));
    this.drop();
    return true;
  }

  /** Closes all files without reading the remaining output. */
  drop(): void {
    this.closeStdin();
    for (const { socket } of this.#pipes) socket.destroy();
    this.#writer.close();
    for (const listener of this.listeners) listener.end();
  }

  #take(stream: 'stdout' | 'stderr', chunk: Buffer): void {
    this.#writer.write(stream, chunk);
    for (const listener of this.listeners) listener.take(stream, chunk);
    if (!this.#writer.hasRest || this.#flushing) return;
    this.#flushing = true;
    // Not injected: the process of the log keeper runs in real time.
    setTimeout(() => {
      this.#flushing = false;
      this.#writer.flush();
    }, flushAfterMs);
  }
}

/** Releases the monitor of an exited container, which then exits too. */
function releaseMonitor(pipe: string): void {
  try {
    const fd = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
    try {
      writeSync(fd, '\n');
    } finally {
      closeSync(fd);
    }
  } catch {
    // The monitor was killed.
  }
}

/** Reads without waiting; 0 when the pipe is empty. */
function readNow(fd: number, buffer: Buffer): number {
  try {
    return readSync(fd, buffer);
  } catch {
    return 0;
  }
}
