import type { TerminalSize } from '@keelson/container-runtime';

/** Longest text of a size that is waited for. */
const maxSizeText = 1024;
const largestSize = 65_535;

/** Sizes of a terminal, told as JSON objects one after the other, cut anywhere. What is none is passed over. */
export class TerminalSizes {
  #rest = '';
  #last: TerminalSize | undefined;
  #tell: (size: TerminalSize) => void = (size) => {
    this.#last = size;
  };

  take(chunk: Buffer): void {
    const parts = (this.#rest + chunk.toString('latin1')).split('}');
    this.#rest = (parts.pop() ?? '').slice(-maxSizeText);
    for (const part of parts) {
      const size = sizeOf(`${part}}`);
      if (size !== undefined) this.#tell(size);
    }
  }

  /**
   * Calls back with the size told last, which may have come before the terminal was there, and with those that come.
   */
  listen(tell: (size: TerminalSize) => void): void {
    this.#tell = tell;
    if (this.#last !== undefined) tell(this.#last);
  }
}

/** Names of fields in any case, as Go reads them: the client for Node writes `width`, others `Width`. */
function sizeOf(json: string): TerminalSize | undefined {
  try {
    const fields = new Map(
      Object.entries(JSON.parse(json) as object).map(([name, value]) => [name.toLowerCase(), value as unknown]),
    );
    const [width, height] = [fields.get('width'), fields.get('height')];
    return isSize(width) && isSize(height) ? { width, height } : undefined;
  } catch {
    return undefined;
  }
}

const isSize = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= largestSize;
