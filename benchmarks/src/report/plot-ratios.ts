import { colourOf, Plot, short } from '@keelson/bench/internal';

/** What a bar needs of a figure. */
export interface RatioBar {
  readonly scenario: string;
  readonly adapter: string;
  readonly ratio: number;
  readonly spread: readonly [number, number];
  readonly mark: string;
  readonly verdict: string;
}

const left = 210;
const right = 160;
const width = 900;
const barHeight = 13;
const gap = 10;
const top = 62;
/** Bars that are longer are cut, and say their figure. */
const cut = 3;

const markValue = (mark: string): number => Number(/[\d.]+/.exec(mark)?.[0] ?? Number.NaN);

/** One bar per scenario and adapter, its spread over the rounds as a thin line, its mark as a dashed one. */
export function plotRatios(title: string, bars: readonly RatioBar[]): string {
  const drawn = bars.filter(({ ratio }) => Number.isFinite(ratio));
  const scenarios = [...new Set(drawn.map(({ scenario }) => scenario))];
  const height = top + drawn.length * barHeight + scenarios.length * gap + 30;
  const plot = new Plot(width, height);
  plot.text(16, 24, title, { size: 15, bold: true });
  plot.legend(left, 44, [...new Set(drawn.map(({ adapter }) => adapter))]);
  const longest = Math.min(
    cut,
    Math.max(1, ...drawn.flatMap(({ ratio, mark }) => [ratio, markValue(mark) || 0])) * 1.05,
  );
  const at = (value: number) => left + (Math.min(value, longest) / longest) * (width - left - right);
  for (let tick = 0; tick <= longest; tick += 0.5) {
    plot.line(at(tick), top - 6, at(tick), height - 24);
    plot.text(at(tick), height - 8, String(tick), { anchor: 'middle', size: 11 });
  }
  let y = top;
  for (const scenario of scenarios) {
    const own = drawn.filter((bar) => bar.scenario === scenario);
    plot.text(left - 8, y + (own.length * barHeight) / 2 + 4, scenario, { anchor: 'end' });
    for (const { adapter, ratio, spread, mark, verdict } of own) {
      const middle = y + barHeight / 2;
      plot.bar(left, y + 1, at(ratio) - left, barHeight - 3, colourOf(adapter));
      plot.line(at(spread[0]), middle - 0.5, at(spread[1]), middle - 0.5, { colour: '#222222' });
      const goal = markValue(mark);
      if (!Number.isNaN(goal))
        plot.line(at(goal), y - 1, at(goal), y + barHeight, { colour: '#cc0033', width: 2, dashed: true });
      const words = mark === '' ? short(ratio) : `${short(ratio)} (${mark}) ${verdict}`;
      plot.text(Math.max(at(ratio), at(spread[1]), Number.isNaN(goal) ? 0 : at(goal)) + 6, y + barHeight - 3, words, {
        size: 10,
      });
      y += barHeight;
    }
    y += gap;
  }
  return plot.toString();
}
