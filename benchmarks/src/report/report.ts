import { cpus } from 'node:os';
import { median } from '../measure/statistics.ts';
import type { Measurement, Round, Scenario } from '../scenarios/scenario.ts';

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
  readonly verdict: 'reached' | 'missed' | 'no verdict' | 'failed';
  /** Rounds that counted, and all of them as they were measured. */
  readonly rounds: number;
  readonly raw: readonly Round[];
  readonly notes: Readonly<Record<string, number>>;
  readonly remark?: string;
}

/** A round whose floor is further than this from the best one was disturbed by something else on the machine. */
const floorTolerance = 1.2;
const usualLeastRounds = 5;

const markFor = ({ goal }: Scenario, adapter: string): number =>
  adapter === 'memory' ? goal.mark : (goal.durableMark ?? goal.mark);

const markText = (scenario: Scenario, adapter: string): string =>
  `${scenario.goal.form === 'share' ? '>=' : '<='} ${markFor(scenario, adapter)}`;

/**
 * Judges the median of the per-round ratios; disturbed rounds do not count, unless too few are left to show anything.
 */
export function toRow(scenario: Scenario, adapter: string, measurement: Measurement): Row {
  const { leastRounds = usualLeastRounds } = measurement;
  const best = Math.min(...measurement.rounds.map((round) => round.floor));
  const good = measurement.rounds.filter((round) => round.floor <= best * floorTolerance);
  const counted = good.length >= leastRounds ? good : measurement.rounds;
  const { form } = scenario.goal;
  const mark = markFor(scenario, adapter);
  const ratios = counted.map(({ floor, subject }) => (form === 'share' ? floor / subject : subject / floor));
  const ratio = median(ratios);
  const reached = form === 'share' ? ratio >= mark : ratio <= mark;
  return {
    scenario: scenario.name,
    adapter,
    what: scenario.what,
    unit: measurement.unit,
    floor: median(counted.map((round) => round.floor)),
    subject: median(counted.map((round) => round.subject)),
    ratio,
    spread: [Math.min(...ratios), Math.max(...ratios)],
    mark: markText(scenario, adapter),
    verdict: good.length < leastRounds ? 'no verdict' : reached ? 'reached' : 'missed',
    rounds: good.length,
    raw: measurement.rounds,
    notes: measurement.notes ?? {},
    ...(measurement.remark === undefined ? {} : { remark: measurement.remark }),
  };
}

/** The row of a scenario that gave no figure. */
export function failedRow(scenario: Scenario, adapter: string, error: Error): Row {
  const none = Number.NaN;
  return {
    scenario: scenario.name,
    adapter,
    what: scenario.what,
    unit: '',
    floor: none,
    subject: none,
    ratio: none,
    spread: [none, none],
    mark: markText(scenario, adapter),
    verdict: 'failed',
    rounds: 0,
    raw: [],
    notes: {},
    remark: error.message,
  };
}

function shown(value: number): string {
  if (Number.isNaN(value)) return '';
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** One Markdown table with a row per figure. */
export function markdown(rows: readonly Row[], commit: string): string {
  const head =
    '| scenario | adapter | unit | floor | Keelson | ratio | spread | mark | | rounds | beside it |\n|---|---|---|---|---|---|---|---|---|---|---|\n';
  const body = rows.map((row) =>
    [
      row.scenario,
      row.adapter,
      row.unit,
      shown(row.floor),
      shown(row.subject),
      shown(row.ratio),
      row.raw.length === 0 ? '' : `${shown(row.spread[0])} to ${shown(row.spread[1])}`,
      row.mark,
      row.verdict,
      `${row.rounds} of ${row.raw.length}`,
      [...Object.entries(row.notes).map(([name, value]) => `${name} ${shown(value)}`), row.remark ?? []]
        .flat()
        .join(', '),
    ].join(' | '),
  );
  const legend = [...new Map(rows.map((row) => [row.scenario, row.what]))].map(
    ([name, what]) => `- **${name}**: ${what}.`,
  );
  const machine = `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown processor'}, Node ${process.versions.node}, commit ${commit}`;
  return `# Benchmarks\n\n${machine}. Medians of interleaved rounds, those left out whose floor was disturbed; cost is the server's CPU unless the unit says otherwise.\n\n${head}${body.map((line) => `| ${line} |\n`).join('')}\n${legend.join('\n')}\n`;
}
