import type { TerminalSize } from '@keelson/container-runtime';

/** Maximum characters of an incomplete size that are buffered. */
const maxSizeText = 1024;
const largestSize = 65_535;

/** Parses terminal sizes from a stream of JSON objects in arbitrary chunks. Invalid objects are ignored. */
export class TerminalSizes {
  #rest = '';
  #last: TerminalSize | undefined;
  #resize: (size: TerminalSize) => void = (size) => {
    this.#last = size;
  };

  /** Adds received bytes. */
  receive(chunk: Buffer): void {
    const parts = (this.#rest + chunk.toString('latin1')).split('}');
    this.#rest = (parts.pop() ?? '').slice(-maxSizeText);
    for (const part of parts) {
      const size = sizeOf(`${part}}`);
      if (size !== undefined) this.#resize(size);
    }
  }

  /**
   * Calls `resize` with the latest size, which may have been received before the terminal existed, and with each later
   * size.
   */
  listen(resize: (size: TerminalSize) => void): void {
    this.#resize = resize;
    if (this.#last !== undefined) resize(this.#last);
  }
}

/** Field names are case-insensitive, as in Go: the client for Node writes `width`, others write `Width`. */
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
