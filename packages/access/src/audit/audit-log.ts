import {
  closeSync,
  createReadStream,
  createWriteStream,
  existsSync,
  fstatSync,
  openSync,
  renameSync,
  write,
  writeSync,
} from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createGzip } from 'node:zlib';
import { UsageError } from '@keelson/core/internal';
import { type Clock, type Logger, type Metrics, tightenMode } from '@keelson/core/runtime';
import { type AuditEvent, type AuditSink, LostEvents } from './audit-sink.ts';
import { assembleMs } from './event-writer.ts';

/**
 * `batch` writes events in the background. `blocking` writes each before its request continues; `blocking-strict` also
 * rejects a request whose first event cannot be written.
 */
export const auditModes = ['batch', 'blocking', 'blocking-strict'] as const;
export type AuditMode = (typeof auditModes)[number];

export interface AuditLogOptions {
  /** `-` stands for the standard output of the process. */
  readonly path: string;
  /** When events are written. Default `batch`. */
  readonly mode?: AuditMode;
  /** Size in bytes at which the file is rotated. Default 100 MiB. */
  readonly maxBytes?: number;
  /** Number of rotated files that are kept; 0, the default: all. */
  readonly maxBackups?: number;
  /** Age in milliseconds at which rotated files are removed; 0, the default: never. */
  readonly maxAgeMs?: number;
  /** Compress rotated files. Default false. */
  readonly compress?: boolean;
}

/** Dependencies of the places where events are stored. */
export interface AuditContext {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const defaultMaxBytes = 100 * 1024 * 1024;
/**
 * Longest wait of an event in the mode `batch`, unless a write is in progress. Together with {@link assembleMs} it is
 * the 25 ms that the documentation states.
 */
const flushMs = 25 - assembleMs;
/** Size of one write. Each has a fixed cost: it wakes up a thread, and the event loop at its end. */
const chunkBytes = 256 * 1024;
const lineBreak = 0x0a;
/** Size of the events that wait for a slow or full disk; further events are dropped and counted. */
const maxWaitingBytes = 64 * 1024 * 1024;
/** Interval between attempts to write to a disk that is full. */
const retryMs = 1_000;
/** Time that closing waits for a full disk. */
const closeMs = 3_000;
const stdout = 1;
const writeTo = promisify(write);

/** Writes events to a file, one per line: see docs/how-to/audit.md#the-log-file. */
export class AuditLog implements AuditSink {
  readonly inBackground: boolean;
  readonly #options: AuditLogOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #lost: LostEvents;
  #file: number;
  /** Devices and pipes are not rotated. */
  #isRegular = false;
  #size = 0;
  /** Complete chunks of waiting events; `#collected` is the incomplete one. */
  #chunks: Buffer[] = [];
  #collected: Buffer | undefined;
  #collectedBytes = 0;
  /** A chunk that has been written, for reuse: allocations outside of the heap trigger the garbage collector. */
  #spare: Buffer | undefined;
  #waitingBytes = 0;
  /** The end of a line, or of a chunk, whose beginning has been written. */
  #rest: Buffer | undefined;
  #cancelFlush: (() => void) | undefined;
  #writing: Promise<void> | undefined;
  #rotatedAt = 0;
  #closing = false;
  #closed = false;
  #tidying: Promise<void>;

  /** Opens the file. @throws UsageError when that is not possible */
  constructor(options: AuditLogOptions, { clock, logger, metrics }: AuditContext) {
    this.#options = options;
    this.inBackground = options.mode === undefined || options.mode === 'batch';
    this.#clock = clock;
    this.#logger = logger.child({ component: 'audit' });
    this.#lost = new LostEvents('log', this.#logger, metrics);
    try {
      this.#file = options.path === '-' ? stdout : this.#open();
    } catch (error) {
      throw new UsageError(`--audit-log-path ${options.path} cannot be opened: ${(error as Error).message}`);
    }
    this.#tidying = this.#tidy();
  }

  add(event: AuditEvent): boolean {
    if (this.#closed) {
      this.#lost.add(1, 'the log is closed');
      return true;
    }
    if (!this.inBackground) return this.#addNow(event);
    if (this.#waitingBytes + event.byteLength > maxWaitingBytes) {
      this.#lost.add(1, `${maxWaitingBytes} bytes of events are waiting`);
      return true;
    }
    this.#collect(event);
    if (this.#chunks.length === 0 || this.#lost.failing)
      this.#cancelFlush ??= this.#clock.after(flushMs, () => this.#flush());
    else this.#flush();
    return true;
  }

  #collect(event: AuditEvent): void {
    const bytes = event.byteLength + 1;
    if (this.#collectedBytes + bytes > chunkBytes) this.#completeChunk();
    this.#waitingBytes += bytes;
    if (bytes > chunkBytes) {
      this.#chunks.push(lineOf(event));
      return;
    }
    this.#collected ??= this.#takeSpare() ?? Buffer.allocUnsafeSlow(chunkBytes);
    event.writeTo(this.#collected, this.#collectedBytes);
    this.#collectedBytes += bytes;
    this.#collected[this.#collectedBytes - 1] = lineBreak;
  }

  #takeSpare(): Buffer | undefined {
    const spare = this.#spare;
    this.#spare = undefined;
    return spare;
  }

  #completeChunk(): void {
    if (this.#collected === undefined) return;
    this.#chunks.push(this.#collected.subarray(0, this.#collectedBytes));
    this.#collected = undefined;
    this.#collectedBytes = 0;
  }

  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    const deadline = this.#clock.monotonic() + closeMs;
    for (;;) {
      this.#flush();
      if (this.#writing === undefined) break;
      await this.#writing;
      if (!this.#lost.failing) continue;
      if (this.#clock.monotonic() >= deadline) break;
      await this.#pause(flushMs);
    }
    this.#cancelFlush?.();
    this.#completeChunk();
    const unwritten = this.#rest === undefined ? this.#chunks : [this.#rest, ...this.#chunks];
    const events = unwritten.reduce((sum, chunk) => sum + linesIn(chunk), 0);
    if (events > 0) this.#lost.add(events, 'the server has stopped');
    this.#closed = true;
    await this.#tidying;
    if (this.#file !== stdout) closeSync(this.#file);
  }

  #open(): number {
    const { path } = this.#options;
    const file = openSync(path, 'a', 0o600);
    const stats = fstatSync(file);
    this.#isRegular = stats.isFile();
    if (this.#isRegular) tightenMode(path, this.#logger);
    this.#size = stats.size;
    return file;
  }

  #addNow(event: AuditEvent): boolean {
    const line = lineOf(event);
    const bytes = this.#rest === undefined ? line : Buffer.concat([this.#rest, line]);
    let at = 0;
    try {
      if (this.#rest === undefined) this.#rotateBefore(bytes.length);
      while (at < bytes.length) at += writeSync(this.#file, bytes, at);
      this.#rest = undefined;
      this.#size += at;
      this.#lost.recovered();
      return true;
    } catch (error) {
      // A line whose beginning has been written is completed before the next one.
      this.#size += at;
      if (at > 0) this.#rest = bytes.subarray(at);
      if (bytes.length - at >= line.length) this.#lost.add(1, error);
      return this.#options.mode !== 'blocking-strict';
    }
  }

  /** Starts to write what is waiting. */
  #flush(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    if (this.#writing !== undefined || (this.#rest === undefined && this.#waitingBytes === 0)) return;
    this.#writing = this.#writeWaiting().finally(() => {
      this.#writing = undefined;
    });
  }

  async #writeWaiting(): Promise<void> {
    while (this.#rest !== undefined || this.#waitingBytes > 0) {
      const isNew = this.#rest === undefined;
      this.#rest ??= this.#take();
      if (this.#rest === undefined) return;
      try {
        if (isNew) this.#rotateBefore(this.#rest.length);
        const { bytesWritten } = await writeTo(this.#file, this.#rest, 0, this.#rest.length);
        this.#size += bytesWritten;
        if (bytesWritten === this.#rest.length) {
          const { buffer } = this.#rest;
          if (buffer.byteLength === chunkBytes) this.#spare = Buffer.from(buffer);
          this.#rest = undefined;
        } else this.#rest = this.#rest.subarray(bytesWritten);
        this.#lost.recovered();
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') {
          await this.#pause(flushMs);
          continue;
        }
        this.#lost.report(error);
        this.#cancelFlush ??= this.#clock.after(retryMs, () => this.#flush());
        return;
      }
    }
  }

  #take(): Buffer | undefined {
    if (this.#chunks.length === 0) this.#completeChunk();
    const chunk = this.#chunks.shift();
    this.#waitingBytes -= chunk?.length ?? 0;
    return chunk;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#clock.after(ms, resolve));
  }

  /** To be called between lines only: the rest of a line belongs to the file that has its beginning. */
  #rotateBefore(length: number): void {
    const { path, maxBytes = defaultMaxBytes } = this.#options;
    if (!this.#isRegular || this.#size === 0 || this.#size + length <= maxBytes) return;
    const before = this.#file;
    // Names must differ, and their order is the order of the events, even if the clock is set back.
    this.#rotatedAt = Math.max(this.#clock.now(), this.#rotatedAt + 1);
    while (existsSync(rotatedPath(path, this.#rotatedAt))) this.#rotatedAt += 1;
    renameSync(path, rotatedPath(path, this.#rotatedAt));
    this.#file = this.#open();
    closeSync(before);
    this.#tidying = this.#tidying.then(() => this.#tidy());
  }

  /** Compresses and removes rotated files. */
  async #tidy(): Promise<void> {
    const { path, maxBackups = 0, maxAgeMs = 0, compress = false } = this.#options;
    if (path === '-') return;
    try {
      const rotated = (await rotatedFiles(path)).reverse();
      for (const [i, { file, at }] of rotated.entries()) {
        const expired = maxAgeMs > 0 && this.#clock.now() - at > maxAgeMs;
        if (expired || (maxBackups > 0 && i >= maxBackups)) await rm(file);
        else if (compress && !file.endsWith('.gz')) await compressFile(file);
      }
    } catch (err) {
      this.#logger.warn('rotated audit logs could not be removed or compressed', { err });
    }
  }
}

function lineOf(event: AuditEvent): Buffer {
  const line = Buffer.allocUnsafe(event.byteLength + 1);
  event.writeTo(line, 0);
  line[event.byteLength] = lineBreak;
  return line;
}

function linesIn(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(lineBreak); at !== -1; at = bytes.indexOf(lineBreak, at + 1)) lines += 1;
  return lines;
}

/** `audit-2025-01-02T15-04-05.000.log`, as kube-apiserver names rotated files. */
function rotatedPath(path: string, now: number): string {
  const extension = extname(path);
  const time = new Date(now).toISOString().slice(0, -1).replaceAll(':', '-');
  return join(dirname(path), `${basename(path, extension)}-${time}${extension}`);
}

const rotatedTime = /^(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d\.\d{3})$/;

/** The rotated files of a log, the oldest first. */
export async function rotatedFiles(path: string): Promise<{ readonly file: string; readonly at: number }[]> {
  const extension = extname(path);
  const prefix = `${basename(path, extension)}-`;
  const found: { file: string; at: number }[] = [];
  for (const name of await readdir(dirname(path))) {
    const plain = name.endsWith('.gz') ? name.slice(0, -3) : name;
    if (!plain.startsWith(prefix) || !plain.endsWith(extension)) continue;
    const time = rotatedTime.exec(plain.slice(prefix.length, plain.length - extension.length));
    if (time !== null)
      found.push({ file: join(dirname(path), name), at: Date.parse(`${time[1]}:${time[2]}:${time[3]}Z`) });
  }
  return found.sort((a, b) => a.at - b.at);
}

async function compressFile(file: string): Promise<void> {
  const unfinished = `${file}.gz.tmp`;
  await pipeline(createReadStream(file), createGzip(), createWriteStream(unfinished, { mode: 0o600 }));
  await rename(unfinished, `${file}.gz`);
  await rm(file);
}
