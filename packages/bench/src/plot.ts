/** Colours by the name of the adapter. They can be distinguished by colour-blind readers and on a grey print. */
const colours: Readonly<Record<string, string>> = {
  memory: '#7a7a7a',
  lmdb: '#009e73',
  etcd: '#0072b2',
  postgres: '#d55e00',
};

export const colourOf = (adapter: string): string => colours[adapter] ?? '#000000';

const escaped = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

const number = (value: number): string => String(Math.round(value * 10) / 10);

/** Drawing instructions, collected as SVG; coordinates are pixels from the upper left. */
export class Plot {
  readonly #width: number;
  readonly #height: number;
  readonly #parts: string[] = [];

  constructor(width: number, height: number) {
    this.#width = width;
    this.#height = height;
  }

  text(
    x: number,
    y: number,
    words: string,
    style: { anchor?: 'start' | 'middle' | 'end'; size?: number; bold?: boolean } = {},
  ): void {
    const { anchor = 'start', size = 12, bold = false } = style;
    const weight = bold ? ' font-weight="bold"' : '';
    this.#parts.push(
      `<text x="${number(x)}" y="${number(y)}" font-size="${size}" text-anchor="${anchor}"${weight}>${escaped(words)}</text>`,
    );
  }

  line(
    x1: number,
    y1: number,
    x2: number,
    y2: number,
    style: { colour?: string; width?: number; dashed?: boolean } = {},
  ): void {
    const { colour = '#cccccc', width = 1, dashed = false } = style;
    const dash = dashed ? ' stroke-dasharray="5 3"' : '';
    this.#parts.push(
      `<line x1="${number(x1)}" y1="${number(y1)}" x2="${number(x2)}" y2="${number(y2)}" stroke="${colour}" stroke-width="${width}"${dash}/>`,
    );
  }

  bar(x: number, y: number, width: number, height: number, colour: string): void {
    this.#parts.push(
      `<rect x="${number(x)}" y="${number(y)}" width="${number(Math.max(0, width))}" height="${number(height)}" fill="${colour}"/>`,
    );
  }

  dot(x: number, y: number, colour: string, hollow = false): void {
    const fill = hollow ? '#ffffff' : colour;
    this.#parts.push(
      `<circle cx="${number(x)}" cy="${number(y)}" r="4" fill="${fill}" stroke="${colour}" stroke-width="1.5"/>`,
    );
  }

  /** Draws the legend of a plot in one row: for each adapter a square of its colour, followed by its name. */
  legend(x: number, y: number, adapters: readonly string[]): void {
    for (const [index, adapter] of adapters.entries()) {
      this.bar(x + index * 90, y - 10, 11, 11, colourOf(adapter));
      this.text(x + index * 90 + 16, y, adapter);
    }
  }

  toString(): string {
    const size = `width="${this.#width}" height="${this.#height}" viewBox="0 0 ${this.#width} ${this.#height}"`;
    const ground = `<rect width="${this.#width}" height="${this.#height}" fill="#ffffff"/>`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif" fill="#222222">\n${ground}\n${this.#parts.join('\n')}\n</svg>\n`;
  }
}

/** A logarithmic scale: returns the function that converts a value from `low` to `high` to a pixel coordinate. */
export function logScale(low: number, high: number, from: number, to: number): (value: number) => number {
  const span = Math.log(high / low);
  return (value) => from + (Math.log(Math.min(high, Math.max(low, value)) / low) / span) * (to - from);
}

/** The powers of ten that enclose the values. */
export function decades(values: readonly number[]): {
  readonly low: number;
  readonly high: number;
  readonly ticks: readonly number[];
} {
  const good = values.filter((value) => value > 0 && Number.isFinite(value));
  const first = Math.floor(Math.log10(Math.min(...good)));
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(...good))));
  const ticks = Array.from({ length: last - first + 1 }, (_, index) => 10 ** (first + index));
  return { low: 10 ** first, high: 10 ** last, ticks };
}

/** Formats a number with at most three significant digits and the suffix `k` or `M`. */
export function short(value: number): string {
  if (value >= 1_000_000) return `${Number((value / 1_000_000).toPrecision(3))}M`;
  if (value >= 1000) return `${Number((value / 1000).toPrecision(3))}k`;
  return String(Number(value.toPrecision(3)));
}
