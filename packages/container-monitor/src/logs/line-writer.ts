import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/** Maximum bytes of an entry; a longer line is split into partial entries, as all writers of this format do. */
const maxTextBytes = 16 * 1024;
const lineEnd = 0x0a;

type Stream = 'stdout' | 'stderr';

/**
 * Writes a log file in the format of the container runtime interface. It does not use `formatLogLine`, because the log
 * keeper is a small process that loads as few modules as possible.
 */
export class LineWriter {
  readonly #now: () => number;
  #previous = 0n;
  readonly #path: string | undefined;
  readonly #rest: Record<Stream, Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  #file: number | undefined;

  /** Without a path, all output is discarded. `now` returns the time since 1970 in microseconds. */
  constructor(path: string | undefined, now: () => number = machineTime) {
    this.#path = path;
    this.#now = now;
    this.reopen();
  }

  /** Opens the file again, after a rotation. @throws the file system's error; the old file stays in use then. */
  reopen(): void {
    if (this.#path === undefined) return;
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o755 });
    const file = openSync(this.#path, 'a', 0o640);
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = file;
  }

  /** True while an unterminated line is buffered. */
  get hasRest(): boolean {
    return this.#rest.stdout.length > 0 || this.#rest.stderr.length > 0;
  }

  write(stream: Stream, chunk: Buffer): void {
    if (this.#file === undefined) return;
    const head = `${this.#timestamp()} ${stream} `;
    const parts: Buffer[] = [];
    let text = this.#rest[stream].length === 0 ? chunk : Buffer.concat([this.#rest[stream], chunk]);
    for (;;) {
      const end = text.indexOf(lineEnd);
      const length = Math.min(end < 0 ? text.length : end, maxTextBytes);
      const whole = length === end;
      if (!whole && length < maxTextBytes) break;
      entry(parts, head, !whole, text.subarray(0, length));
      text = text.subarray(whole ? length + 1 : length);
    }
    this.#rest[stream] = Buffer.from(text);
    this.#append(parts);
  }

  /** Writes the buffered unterminated lines as partial entries. */
  flush(): void {
    const parts: Buffer[] = [];
    for (const stream of ['stdout', 'stderr'] as const) {
      const text = this.#rest[stream];
      this.#rest[stream] = Buffer.alloc(0);
      if (text.length > 0) entry(parts, `${this.#timestamp()} ${stream} `, true, text);
    }
    this.#append(parts);
  }

  close(): void {
    this.flush();
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #append(parts: readonly Buffer[]): void {
    if (this.#file === undefined) return;
    let bytes = Buffer.concat(parts);
    try {
      while (bytes.length > 0) bytes = bytes.subarray(writeSync(this.#file, bytes));
    } catch {
      // A full disk loses log lines. An error here would stop reading, and the container would block on its pipe.
    }
  }

  /** The time in RFC 3339, UTC, with nine fractional digits; never earlier than the previous one of this log. */
  #timestamp(): string {
    const now = BigInt(this.#now()) * 1000n;
    if (now > this.#previous) this.#previous = now;
    const seconds = new Date(Number(this.#previous / 1_000_000n)).toISOString().slice(0, 19);
    return `${seconds}.${String(this.#previous % 1_000_000_000n).padStart(9, '0')}Z`;
  }
}

function entry(parts: Buffer[], head: string, partial: boolean, text: Buffer): void {
  parts.push(Buffer.from(`${head}${partial ? 'P' : 'F'} `, 'latin1'), text, Buffer.of(lineEnd));
}

/** Not injected: log entries have the time of the machine in microseconds, which a `Clock` does not have. */
function machineTime(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1000);
}
