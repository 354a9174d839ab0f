import { cpus, totalmem } from 'node:os';
import type { StoreRow } from '../stores/store-row.ts';
import { plotRatios } from './plot-ratios.ts';
import { plotLatency, plotThroughput } from './plot-writes.ts';
import { markdown, type Row } from './report.ts';
import { storesMarkdown, writePoints } from './stores-report.ts';

/** One call of the command. */
export interface Run {
  readonly commit: string;
  /** Words of the command line. */
  readonly words: readonly string[];
  /** Average number of processes that wanted to run, over a minute, before and after. */
  readonly load: readonly [before: number, after: number];
}

/** Where and when the figures were taken. */
export interface Circumstances {
  /** Several when some figures were measured again; the last one that has a figure gave it. */
  readonly runs: readonly Run[];
  /** Reason by adapter that could not be measured at all. */
  readonly missing: Readonly<Record<string, string>>;
}

/** Files of a report by name. */
export type ReportFiles = Readonly<Record<string, string>>;

export interface Figures {
  readonly rows: readonly Row[];
  readonly stores: readonly StoreRow[];
  readonly circumstances: Circumstances;
}

function plots({ rows, stores }: Figures): ReportFiles {
  const points = writePoints(stores);
  const finite = stores.filter(({ ratio }) => Number.isFinite(ratio));
  const shares = finite.filter(({ scenario }) => /^store (write|get|list 500$)/.test(scenario));
  const times = finite.filter((row) => !shares.includes(row) && !/memory|start/.test(row.scenario));
  const measured = rows.filter(({ ratio }) => Number.isFinite(ratio));
  return {
    ...(shares.length > 0 && {
      'store-shares.svg': plotRatios('Share of the raw backend’s throughput (more is better)', shares),
    }),
    ...(times.length > 0 && { 'store-times.svg': plotRatios('Times the floor (less is better)', times) }),
    ...(points.length > 0 && {
      'write-throughput.svg': plotThroughput(points),
      'write-latency.svg': plotLatency(points),
    }),
    ...(measured.length > 0 && {
      'http.svg': plotRatios('HTTP scenarios beside their floors (>= more, <= less is better)', measured),
    }),
  };
}

const captions: Readonly<Record<string, string>> = {
  'store-shares.svg': 'Throughput as a share of the raw backend, with the marks as dashed lines',
  'store-times.svg': 'Past pages, watch lag and idle CPU as multiples of their floors',
  'write-throughput.svg': 'Writes per second over writes in flight',
  'write-latency.svg': 'Latency of writes over writes in flight',
  'http.svg': 'HTTP scenarios: ratio per adapter with the mark',
};

const gigabyte = 1_000_000_000;

const quoted = (word: string): string => (word.includes(' ') ? `'${word}'` : word);

const sentence = ({ commit, words, load }: Run, index: number): string =>
  `${index === 0 ? 'Measured' : 'Some figures measured again'} at commit ${commit}; load of the machine (average of a minute) ${load[0].toFixed(1)} when the run began, ${load[1].toFixed(1)} when it ended, its own included:\n\n    npm run bench -- ${words.map(quoted).join(' ')}\n\n`;

function opening({ runs, missing }: Circumstances, disturbed: number): string {
  const machine = `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown processor'}, ${Math.round(totalmem() / gigabyte)} GB, Node ${process.versions.node}`;
  const absent = Object.entries(missing).map(([adapter, reason]) => `- **${adapter}**: not measured: ${reason}.\n`);
  return [
    '# Benchmarks across adapters\n\n',
    `${machine}.\n\n`,
    ...runs.map(sentence),
    'Figures are medians of interleaved rounds: floor and subject take turns of a second or less, and a round whose floor lies more than 20 % off its best one does not count. ',
    'Fewer than five rounds that count are no verdict: the median of all is shown. Absolute figures are those of this machine; the ratios are the result.\n',
    disturbed === 0 ? '' : `\n${disturbed} rows had too few undisturbed rounds for a verdict in this run.\n`,
    absent.length === 0 ? '' : `\n${absent.join('')}`,
    '\n',
  ].join('');
}

function misses(rows: readonly (Row | StoreRow)[]): string {
  const missed = rows.filter(({ verdict }) => verdict === 'missed');
  const marked = rows.filter(({ verdict }) => verdict === 'reached' || verdict === 'missed');
  const list = missed.map(
    ({ scenario, adapter, ratio, mark }) => `- ${scenario} on ${adapter}: ${ratio.toFixed(2)}, promised ${mark}\n`,
  );
  return `## Promises missed\n\n${missed.length} of ${marked.length} figures with a verdict miss their mark.\n\n${list.join('')}\n`;
}

/** The marks of HTTP scenarios were set for the stores of one process. */
function onOthers(rows: readonly Row[]): string {
  if (!rows.some(({ adapter }) => adapter === 'etcd' || adapter === 'postgres')) return '';
  return '\nThe marks are those set for memory and LMDB. On etcd and Postgres the database runs beside the server on the same cores, and a create is compared with a put into LMDB in the floor’s own process; the figures are judged by the same marks all the same.\n';
}

/** The report as Markdown, JSON and plots. */
export function wholeReport(figures: Figures): ReportFiles {
  const { rows, stores, circumstances } = figures;
  const images = plots(figures);
  const all = [...rows, ...stores];
  const shown = Object.keys(images).map((name) => `![${captions[name] ?? name}](${name})\n\n`);
  const http =
    rows.length === 0
      ? ''
      : `\n${markdown(rows, circumstances.runs.at(-1)?.commit ?? 'unknown').replace('# Benchmarks', '## HTTP scenarios')}${onOthers(rows)}`;
  const text = [
    opening(circumstances, all.filter(({ verdict }) => verdict === 'no verdict').length),
    misses(all),
    ...shown,
    stores.length === 0 ? '' : storesMarkdown(stores),
    http,
  ].join('');
  const json = { ...circumstances, machine: { processors: cpus().length, model: cpus()[0]?.model }, rows, stores };
  return { 'report.md': text, 'report.json': `${JSON.stringify(json, null, 2)}\n`, ...images };
}
