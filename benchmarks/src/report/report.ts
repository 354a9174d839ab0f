import { cpus } from 'node:os';
import { median } from '../measure/statistics.ts';
import type { Measurement, Scenario } from '../scenarios/scenario.ts';

export interface Row {
  readonly scenario: string;
  readonly adapter: string;
  readonly what: string;
  readonly unit: string;
  readonly floor: number;
  readonly subject: number;
  readonly ratio: number;
  /** Smallest and greatest ratio of a round. */
  readonly spread: readonly [number, number];
  readonly mark: string;
  readonly reached: boolean;
  /** Rounds that counted; below five the figure is no verdict. */
  readonly rounds: number;
  readonly notes: Readonly<Record<string, number>>;
}

/** A round whose floor is further than this from the best one was disturbed by something else on the machine. */
const floorTolerance = 1.2;

/** Judges the median of the per-round ratios; disturbed rounds do not count. */
export function toRow(scenario: Scenario, adapter: string, measurement: Measurement): Row {
  const best = Math.min(...measurement.rounds.map((round) => round.floor));
  const good = measurement.rounds.filter((round) => round.floor <= best * floorTolerance);
  const counted = good.length >= 3 ? good : measurement.rounds;
  const { form, mark } = scenario.goal;
  const ratios = counted.map(({ floor, subject }) => (form === 'share' ? floor / subject : subject / floor));
  const ratio = median(ratios);
  return {
    scenario: scenario.name,
    adapter,
    what: scenario.what,
    unit: measurement.unit,
    floor: median(counted.map((round) => round.floor)),
    subject: median(counted.map((round) => round.subject)),
    ratio,
    spread: [Math.min(...ratios), Math.max(...ratios)],
    mark: form === 'share' ? `>= ${mark}` : `<= ${mark}`,
    reached: form === 'share' ? ratio >= mark : ratio <= mark,
    rounds: counted.length,
    notes: measurement.notes ?? {},
  };
}

const shown = (value: number): string => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));

/** One Markdown table with a row per figure. */
export function markdown(rows: readonly Row[], commit: string): string {
  const head =
    '| scenario | adapter | unit | floor | Keelson | ratio | spread | mark | |\n|---|---|---|---|---|---|---|---|---|\n';
  const body = rows.map((row) =>
    [
      row.scenario,
      row.adapter,
      row.unit,
      shown(row.floor),
      shown(row.subject),
      shown(row.ratio),
      `${shown(row.spread[0])} to ${shown(row.spread[1])}`,
      row.mark,
      row.rounds < 3 ? 'no verdict' : row.reached ? 'reached' : 'missed',
    ].join(' | '),
  );
  const legend = [...new Map(rows.map((row) => [row.scenario, row.what]))].map(([name, what]) => `- **${name}**: ${what}.`);
  const machine = `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown processor'}, Node ${process.versions.node}, commit ${commit}`;
  return `# Benchmarks\n\n${machine}. Medians of interleaved rounds; cost is the server's CPU unless the unit says otherwise.\n\n${head}${body.map((line) => `| ${line} |\n`).join('')}\n${legend.join('\n')}\n`;
}
