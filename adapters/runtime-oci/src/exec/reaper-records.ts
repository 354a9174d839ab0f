import type { Readable } from 'node:stream';

const recordPattern = /^([0-9a-f]{8})([0-9a-f]{8})$/;

/** The exit statuses that a reaper reports. */
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

  /** True when the reaper has ended, so that no more records follow. */
  get over(): boolean {
    return this.#over;
  }

  /** Resolves with the number of records when there are more than `count`, or when no more follow. */
  async moreThan(count: number): Promise<number> {
    await this.#until(() => this.#statuses.size > count);
    return this.#statuses.size;
  }

  /** Resolves with the status of a process when it has ended; undefined when the reaper ended first. */
  async statusOf(pid: number): Promise<number | undefined> {
    await this.#until(() => this.#statuses.has(pid));
    return this.#statuses.get(pid);
  }

  #until(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (!this.#over && !condition()) return;
        this.#waiting.delete(check);
        resolve();
      };
      this.#waiting.add(check);
      check();
    });
  }

  #wake(): void {
    for (const check of [...this.#waiting]) check();
  }
}
