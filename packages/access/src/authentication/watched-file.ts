import { open, stat } from 'node:fs/promises';
import { UsageError } from '@keelson/core/internal';
import type { Clock, Logger } from '@keelson/core/runtime';

/** Interval at which the file is checked for changes, in milliseconds. */
export const filePollMs = 10_000;
/** Maximum size of a watched file; larger files are rejected. */
const maxFileBytes = 32 * 1024 * 1024;
const othersMayUse = 0o077;

export interface WatchedFileOptions<T> {
  /** Name of the option and path for messages, e.g. `--token-auth-file /etc/tokens.csv`. */
  readonly source: string;
  readonly path: string;
  /** @throws Error whose message contains the source and no secrets */
  readonly parse: (content: Buffer) => T | Promise<T>;
  /** Called with the new value after the content has changed. */
  readonly onChange?: (value: T) => void;
  /** The file contains secrets: a warning is logged when other users may access it. */
  readonly secret?: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * The parsed content of a file, which is read again when the file changes. While a changed file cannot be read or
 * parsed, the previous value remains in use, and the problem is logged once.
 */
export class WatchedFile<T> {
  readonly #options: WatchedFileOptions<T>;
  #value: T;
  #content: Buffer;
  #signature: string;
  #problem = '';
  #cancel: () => void = () => {};
  #stopped = false;

  private constructor(options: WatchedFileOptions<T>, value: T, content: Buffer, signature: string) {
    this.#options = options;
    this.#value = value;
    this.#content = content;
    this.#signature = signature;
    this.#schedule();
  }

  /** Reads the file. @throws UsageError when it cannot be read or parsed */
  static async open<T>(options: WatchedFileOptions<T>): Promise<WatchedFile<T>> {
    const { source, path, parse, secret = false, logger } = options;
    const { content, signature, mode } = await read(path).catch((error: Error) => {
      throw new UsageError(`${source} cannot be read: ${error.message}`);
    });
    if (secret && (mode & othersMayUse) !== 0) {
      logger.warn('the file is accessible to other users; restrict it with chmod 600', { path });
    }
    const value = await Promise.resolve(content)
      .then(parse)
      .catch((error: Error) => {
        throw error instanceof UsageError ? error : new UsageError(`${source}: ${error.message}`);
      });
    return new WatchedFile(options, value, content, signature);
  }

  get value(): T {
    return this.#value;
  }

  /** Stops checking the file for changes. */
  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#cancel = this.#options.clock.after(filePollMs, () => void this.#poll().then(() => this.#schedule()));
  }

  async #poll(): Promise<void> {
    const { path, parse, logger, onChange, source } = this.#options;
    try {
      if (signatureOf(await stat(path)) === this.#signature) return;
      const { content, signature } = await read(path);
      if (!content.equals(this.#content)) {
        const value = await parse(content);
        if (this.#stopped) return;
        this.#value = value;
        this.#content = content;
        onChange?.(value);
        logger.info('a changed file was loaded', { path });
      }
      this.#signature = signature;
      this.#problem = '';
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#problem)
        logger.error('a changed file cannot be used, the previous content remains in use', {
          source,
          problem: message,
        });
      this.#problem = message;
    }
  }
}

function signatureOf({ mtimeMs, size, ino }: { mtimeMs: number; size: number; ino: number }): string {
  return `${mtimeMs} ${size} ${ino}`;
}

async function read(path: string): Promise<{ content: Buffer; signature: string; mode: number }> {
  const file = await open(path);
  try {
    const stats = await file.stat();
    if (stats.size > maxFileBytes) throw new Error(`the file is larger than ${maxFileBytes} bytes`);
    return { content: await file.readFile(), signature: signatureOf(stats), mode: stats.mode };
  } finally {
    await file.close();
  }
}
