import type { Readable } from 'node:stream';

const recordPattern = /^([0-9a-f]{8})([0-9a-f]{8})$/;

/** What a reaper writes about processes that ended. */
export class ReaperRecords {
  readonly #statuses = new Map<number, number>();
  readonly #waiting = new Set<() => void>();
  #over = false;

  constructor(stream: Readable) {
    let rest = '';
    stream.setEncoding('latin1');
    stream.on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const [, pid, status] = recordPattern.exec(line) ?? [];
        if (pid !== undefined && status !== undefined)
          this.#statuses.set(Number.parseInt(pid, 16), Number.parseInt(status, 16));
      }
      this.#wake();
    });
    stream.on('error', () => {});
    stream.on('close', () => {
      this.#over = true;
      this.#wake();
    });
  }

  /** No more records will come. */
  get over(): boolean {
    return this.#over;
  }

  /** Resolves when there are more records than so many, or never will be; their number. */
  async moreThan(count: number): Promise<number> {
    await this.#until(() => this.#statuses.size > count);
    return this.#statuses.size;
  }

  /** How a process ended, once it has; undefined when the reaper is gone before. */
  async statusOf(pid: number): Promise<number | undefined> {
    await this.#until(() => this.#statuses.has(pid));
    return this.#statuses.get(pid);
  }

  #until(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!this.#over && !condition()) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }

  #wake(): void {
    for (const look of [...this.#waiting]) look();
  }
}
