import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/** Bytes after which an entry is cut and marked as partial; what every runtime of this format does. */
const maxTextBytes = 16 * 1024;
const lineEnd = 0x0a;

type Stream = 'stdout' | 'stderr';

/**
 * Writes a log file line by line. It formats lines itself although `formatLogLine` would: the log keeper is one small
 * process that must not load the rest.
 */
export class LineWriter {
  readonly #path: string | undefined;
  readonly #rest: Record<Stream, Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  #file: number | undefined;

  /** Without a path, everything is thrown away. */
  constructor(path: string | undefined) {
    this.#path = path;
    this.reopen();
  }

  /** @throws what the file system says; the old file stays in use then. */
  reopen(): void {
    if (this.#path === undefined) return;
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o755 });
    const file = openSync(this.#path, 'a', 0o640);
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = file;
  }

  /** True while text waits for its line end. */
  get hasRest(): boolean {
    return this.#rest.stdout.length > 0 || this.#rest.stderr.length > 0;
  }

  write(stream: Stream, chunk: Buffer): void {
    if (this.#file === undefined) return;
    const head = `${timestamp()} ${stream} `;
    const parts: Buffer[] = [];
    let text = this.#rest[stream].length === 0 ? chunk : Buffer.concat([this.#rest[stream], chunk]);
    for (;;) {
      const end = text.indexOf(lineEnd);
      const length = Math.min(end < 0 ? text.length : end, maxTextBytes);
      const whole = end >= 0 && length === end;
      if (!whole && length < maxTextBytes) break;
      entry(parts, head, !whole, text.subarray(0, length));
      text = text.subarray(whole ? length + 1 : length);
    }
    this.#rest[stream] = Buffer.from(text);
    this.#append(parts);
  }

  /** Writes what has no line end yet, as partial entries. */
  flush(): void {
    const parts: Buffer[] = [];
    for (const stream of ['stdout', 'stderr'] as const) {
      const text = this.#rest[stream];
      this.#rest[stream] = Buffer.alloc(0);
      if (text.length > 0) entry(parts, `${timestamp()} ${stream} `, true, text);
    }
    this.#append(parts);
  }

  close(): void {
    this.flush();
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #append(parts: readonly Buffer[]): void {
    if (parts.length === 0 || this.#file === undefined) return;
    let bytes = Buffer.concat(parts);
    try {
      while (bytes.length > 0) bytes = bytes.subarray(writeSync(this.#file, bytes));
    } catch {
      // A full disk costs log lines; it must not stop the container, which would block on its pipe.
    }
  }
}

function entry(parts: Buffer[], head: string, partial: boolean, text: Buffer): void {
  parts.push(Buffer.from(`${head}${partial ? 'P' : 'F'} `, 'latin1'), text, Buffer.of(lineEnd));
}

let previous = 0n;

/** RFC 3339 in UTC with nine digits; never earlier than the one before. */
function timestamp(): string {
  let now = BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)) * 1000n;
  if (now <= previous) now = previous;
  previous = now;
  const seconds = new Date(Number(now / 1_000_000n)).toISOString().slice(0, 19);
  return `${seconds}.${String(now % 1_000_000_000n).padStart(9, '0')}Z`;
}
