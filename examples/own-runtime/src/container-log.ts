import { once } from 'node:events';
import { createWriteStream, type WriteStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { formatLogLine } from '@keelson/container-runtime';
import type { Clock } from '@keelson/core/runtime';

/** A longer line is split into several entries, as other runtimes do. */
const maxLineBytes = 16_384;

/** The log file of one container: entries in the format of the container runtime interface. */
export class ContainerLog {
  readonly #path: string;
  readonly #clock: Clock;
  #file: WriteStream;

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
    this.#file = this.#open();
  }

  /** Continues in a new file at the same path, after the old file was renamed. */
  async reopen(): Promise<void> {
    const before = this.#file;
    this.#file = this.#open();
    await once(this.#file, 'open');
    before.end();
  }

  /** Writes everything that the stream delivers; resolves at its end. */
  async write(stream: Readable, name: 'stdout' | 'stderr'): Promise<void> {
    let rest: Buffer = Buffer.alloc(0);
    for await (const chunk of stream) {
      rest = Buffer.concat([rest, chunk as Buffer]);
      for (let end = rest.indexOf(0x0a); end >= 0 || rest.length > maxLineBytes; end = rest.indexOf(0x0a)) {
        const partial = end < 0 || end > maxLineBytes;
        const length = partial ? maxLineBytes : end;
        await this.#entry(name, partial, rest.subarray(0, length));
        rest = rest.subarray(partial ? length : length + 1);
      }
    }
    if (rest.length > 0) await this.#entry(name, true, rest);
  }

  async close(): Promise<void> {
    this.#file.end();
    await once(this.#file, 'close');
  }

  async #entry(name: 'stdout' | 'stderr', partial: boolean, text: Buffer): Promise<void> {
    const file = this.#file;
    const time = new Date(this.#clock.now()).toISOString();
    if (!file.write(formatLogLine(time, name, partial, text))) await once(file, 'drain');
  }

  #open(): WriteStream {
    return createWriteStream(this.#path, { flags: 'a', mode: 0o640 });
  }
}
