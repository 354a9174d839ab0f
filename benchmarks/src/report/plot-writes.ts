import { colourOf, decades, logScale, Plot, short } from '@keelson/bench/internal';

/** Writes of one adapter with so many in flight. */
export interface WritePoint {
  readonly adapter: string;
  readonly inFlight: number;
  readonly perSecond: number;
  readonly rawPerSecond: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
}

const width = 760;
const height = 400;
const frame = { left: 76, right: 150, top: 66, bottom: 46 };
const floorY = height - frame.bottom;

interface Line {
  readonly name: string;
  readonly colour: string;
  readonly dashed: boolean;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** Lines over the number in flight, both scales logarithmic. */
function linesOverInFlight(title: string, subtitle: string, unit: string, lines: readonly Line[]): string {
  const plot = new Plot(width, height);
  const xs = [...new Set(lines.flatMap(({ points }) => points.map(([x]) => x)))].sort((a, b) => a - b);
  const { low, high, ticks } = decades(lines.flatMap(({ points }) => points.map(([, y]) => y)));
  const x = logScale(xs[0] ?? 1, Math.max(xs.at(-1) ?? 1, (xs[0] ?? 1) * 2), frame.left, width - frame.right);
  const y = logScale(low, high, floorY, frame.top);
  plot.text(16, 24, title, { size: 15, bold: true });
  plot.text(16, 44, subtitle);
  for (const tick of ticks) {
    plot.line(frame.left, y(tick), width - frame.right, y(tick));
    plot.text(frame.left - 8, y(tick) + 4, `${short(tick)} ${unit}`, { anchor: 'end', size: 11 });
  }
  for (const value of xs) plot.text(x(value), floorY + 18, String(value), { anchor: 'middle', size: 11 });
  plot.text((frame.left + width - frame.right) / 2, height - 8, 'writes in flight', { anchor: 'middle' });
  let lastLabel = Number.NEGATIVE_INFINITY;
  const byEnd = [...lines].sort((a, b) => y(a.points.at(-1)?.[1] ?? 1) - y(b.points.at(-1)?.[1] ?? 1));
  for (const { name, colour, dashed, points } of byEnd) {
    for (const [index, [px, py]] of points.entries()) {
      const before = points[index - 1];
      if (before !== undefined) plot.line(x(before[0]), y(before[1]), x(px), y(py), { colour, width: 2, dashed });
      plot.dot(x(px), y(py), colour, dashed);
    }
    const end = points.at(-1);
    if (end === undefined) continue;
    lastLabel = Math.max(lastLabel + 14, y(end[1]) + 4);
    plot.text(x(end[0]) + 10, lastLabel, name, { size: 11 });
  }
  return plot.toString();
}

const byAdapter = (points: readonly WritePoint[]): readonly (readonly [string, readonly WritePoint[]])[] =>
  [...new Set(points.map(({ adapter }) => adapter))].map((adapter) => [
    adapter,
    points.filter((point) => point.adapter === adapter).sort((a, b) => a.inFlight - b.inFlight),
  ]);

export function plotThroughput(points: readonly WritePoint[]): string {
  const lines = byAdapter(points).flatMap(([adapter, own]): Line[] => [
    {
      name: adapter,
      colour: colourOf(adapter),
      dashed: false,
      points: own.map((point) => [point.inFlight, point.perSecond]),
    },
    {
      name: `${adapter} raw`,
      colour: colourOf(adapter),
      dashed: true,
      points: own.map((point) => [point.inFlight, point.rawPerSecond]),
    },
  ]);
  return linesOverInFlight('Writes per second', '1 KB values; dashed: the raw backend in the same run', '/s', lines);
}

export function plotLatency(points: readonly WritePoint[]): string {
  const lines = byAdapter(points).flatMap(([adapter, own]): Line[] => [
    {
      name: `${adapter} p50`,
      colour: colourOf(adapter),
      dashed: false,
      points: own.map((point) => [point.inFlight, point.p50Ms]),
    },
    {
      name: `${adapter} p99`,
      colour: colourOf(adapter),
      dashed: true,
      points: own.map((point) => [point.inFlight, point.p99Ms]),
    },
  ]);
  return linesOverInFlight('Latency of a write', '1 KB values; solid: median, dashed: 99th percentile', 'ms', lines);
}
