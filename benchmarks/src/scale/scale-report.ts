import { cpus, totalmem } from 'node:os';
import { Plot, short } from '@keelson/bench/internal';
import { fitOf, type GrowthPoint } from './growth.ts';
import { scaleParts } from './scale-parts.ts';

/** A part as it was measured. */
export interface PartResult {
  readonly name: string;
  readonly storage: string;
  readonly commit: string;
  readonly words: readonly string[];
  /** Load of the machine before and after. */
  readonly load: readonly [number, number];
  readonly points: readonly GrowthPoint[];
  /** Why it ended before its last step. */
  readonly ended?: string;
}

const width = 760;
const plotHeight = 190;
const frame = { left: 90, right: 150, top: 40, bottom: 30 };
const colour = '#0072b2';
const lineColour = '#d55e00';

const table = (head: readonly string[], body: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...body].map((cells) => `| ${cells.join(' | ')} |\n`).join('');

const partOf = (name: string) => scaleParts.find((part) => part.name === name);

/** A plot for each figure: the points and the line that fits them. */
function plotGrowth({ points }: PartResult, fitted: readonly string[], unit: string): string {
  const plot = new Plot(width, fitted.length * plotHeight);
  const furthest = Math.max(...points.map(({ x }) => x));
  const x = (value: number) => frame.left + (value / furthest) * (width - frame.left - frame.right);
  for (const [index, figure] of fitted.entries()) {
    const { base, slope } = fitOf(points, figure);
    const values = points.map(({ figures }) => figures[figure] ?? 0);
    const most = Math.max(...values, base + slope * furthest, Number.MIN_VALUE) * 1.05;
    const bottom = (index + 1) * plotHeight - frame.bottom;
    const y = (value: number) => bottom - (Math.max(0, value) / most) * (plotHeight - frame.top - frame.bottom);
    plot.text(16, index * plotHeight + 24, `${figure} over ${unit}`, { size: 13, bold: true });
    for (const tick of [0, most / 2, most]) {
      plot.line(frame.left, y(tick), width - frame.right, y(tick));
      plot.text(frame.left - 8, y(tick) + 4, short(tick), { anchor: 'end', size: 11 });
    }
    for (const tick of [0, furthest / 2, furthest])
      plot.text(x(tick), bottom + 16, short(tick), { anchor: 'middle', size: 11 });
    plot.line(x(0), y(base), x(furthest), y(base + slope * furthest), { colour: lineColour, width: 2 });
    for (const point of points) plot.dot(x(point.x), y(point.figures[figure] ?? 0), colour);
    plot.text(width - frame.right + 10, y(base + slope * furthest) + 4, `${short(slope * 1000)} per 1,000`, {
      size: 11,
    });
  }
  return plot.toString();
}

const sign = (value: number): string => (value < 0 ? `-${short(-value)}` : short(value));

function section(result: PartResult): string {
  const { name, storage, commit, words, load, points, ended } = result;
  const part = partOf(name);
  if (part === undefined || points.length === 0) return `## ${name}\n\nNot measured: ${ended ?? 'unknown part'}.\n\n`;
  const figures = Object.keys(points[0]?.figures ?? {});
  const furthest = Math.max(...points.map(({ x }) => x));
  const fits = part.fitted.map((figure) => {
    const { base, slope, r2 } = fitOf(points, figure);
    // A line that falls says that the figure does not grow, not that it becomes nothing.
    const tenTimes = slope < 0 ? 'no growth' : `${sign(base + slope * furthest * 10)} at ${short(furthest * 10)}`;
    return [figure, sign(base), sign(slope * 1000), r2.toFixed(2), tenTimes];
  });
  return [
    `## ${name}\n\n${part.what[0]?.toUpperCase()}${part.what.slice(1)}. Storage: ${storage}; commit ${commit}; load of the machine (average of a minute) ${load[0].toFixed(1)} before and ${load[1].toFixed(1)} after, its own included:\n\n`,
    `    node benchmarks/dist/src/scale/scale.js ${words.join(' ')}\n\n`,
    ended === undefined ? '' : `It ended before its last step: ${ended}.\n\n`,
    table(
      [part.unit, ...figures],
      points.map((point) => [short(point.x), ...figures.map((figure) => sign(point.figures[figure] ?? Number.NaN))]),
    ),
    `\n![Growth of ${name}](scale-${name}.svg)\n\n`,
    points.length < 3
      ? ''
      : table(['figure', 'at 0 (fitted)', `slope per 1,000 ${part.unit}`, 'r²', 'line at ten times as many'], fits),
    '\n',
  ].join('');
}

/** The report of all parts, as Markdown, JSON and plots. */
export function scaleReport(results: readonly PartResult[]): Readonly<Record<string, string>> {
  const machine = `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown processor'}, ${Math.round(totalmem() / 1e9)} GB, Node ${process.versions.node}`;
  const intro = `# Growth\n\n${machine}. One Keelson server over TLS on one core, the load on the other, Postgres on both; no controllers. CPU times are those of the server's threads (and of Postgres, where it is used); MB are resident memory without mapped files; delays of the event loop are those since the previous row.\n\n`;
  const plots = results.flatMap((result) => {
    const part = partOf(result.name);
    if (part === undefined || result.points.length < 3) return [];
    return [[`scale-${result.name}.svg`, plotGrowth(result, part.fitted, part.unit)] as const];
  });
  return {
    'scale.md': `${intro}${results.map(section).join('')}`.replace(/\n+$/, '\n'),
    'scale.json': `${JSON.stringify(results, null, 2)}\n`,
    ...Object.fromEntries(plots),
  };
}
