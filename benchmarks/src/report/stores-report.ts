import { short } from '@keelson/bench/internal';
import type { StoreRow } from '../stores/store-row.ts';
import type { WritePoint } from './plot-writes.ts';

const figure = (value: number | undefined): string =>
  value === undefined || !Number.isFinite(value) ? '' : short(value);

/** The points of the write scenarios, for the plots. */
export function writePoints(rows: readonly StoreRow[]): readonly WritePoint[] {
  return rows.flatMap(({ scenario, adapter, ratio, notes }) => {
    const inFlight = Number(/^store write (\d+)$/.exec(scenario)?.[1]);
    if (!(inFlight > 0) || !Number.isFinite(ratio)) return [];
    const of = (name: string): number => notes[name] ?? Number.NaN;
    return {
      adapter,
      inFlight,
      perSecond: of('writes/s'),
      rawPerSecond: of('raw writes/s'),
      p50Ms: of('p50 ms'),
      p90Ms: of('p90 ms'),
      p99Ms: of('p99 ms'),
    };
  });
}

const table = (head: readonly string[], body: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...body].map((cells) => `| ${cells.join(' | ')} |\n`).join('');

function line(row: StoreRow): readonly string[] {
  const { scenario, adapter } = row;
  if (row.verdict === 'not measured')
    return [scenario, adapter, '', '', '', '', '', row.mark, `not measured: ${row.remark}`, ''];
  if (row.verdict === 'failed') return [scenario, adapter, '', '', '', '', '', row.mark, `failed: ${row.remark}`, ''];
  return [
    scenario,
    adapter,
    row.unit,
    figure(row.floor),
    figure(row.subject),
    row.ratio.toFixed(2),
    `${row.spread[0].toFixed(2)} to ${row.spread[1].toFixed(2)}`,
    row.mark,
    row.verdict,
    `${row.rounds} of ${row.raw.length}`,
  ];
}

/** Tables of what the stores did, beside their raw backends. */
export function storesMarkdown(rows: readonly StoreRow[]): string {
  const points = writePoints(rows);
  const latency = points.map((point) => {
    const row = rows.find(
      ({ scenario, adapter }) => adapter === point.adapter && scenario === `store write ${point.inFlight}`,
    );
    const cells = [point.perSecond, point.rawPerSecond, point.p50Ms, point.p90Ms, point.p99Ms];
    const raw = [row?.notes['raw p50 ms'], row?.notes['raw p99 ms']];
    return [point.adapter, String(point.inFlight), ...cells.map(figure), ...raw.map(figure)];
  });
  const others = rows
    .filter(({ scenario, notes }) => !scenario.startsWith('store write') && notes['p50 ms'] !== undefined)
    .map(({ scenario, adapter, notes }) => [scenario, adapter, figure(notes['p50 ms']), figure(notes['p99 ms'])]);
  const what = [...new Map(rows.map((row) => [row.scenario, row.what]))].map(
    ([name, words]) => `- **${name}**: ${words}.\n`,
  );
  const raws = [
    ...new Map(
      rows.flatMap(({ adapter, remark }) => (remark?.startsWith('raw: ') ? [[adapter, remark.slice(5)]] : [])),
    ),
  ];
  const parts = [
    '## Stores beside their raw backends\n\n',
    'The same process asks both in turn. Writes, get and list: the ratio is the share of the raw throughput that the store keeps. Everything else: so many times the floor.\n\n',
    table(
      ['scenario', 'adapter', 'unit', 'floor', 'Keelson', 'ratio', 'spread', 'mark', 'verdict', 'good rounds'],
      rows.map(line),
    ),
    '\n',
    ...what,
    ...raws.map(([adapter, words]) => `- **raw ${adapter}**: ${words}.\n`),
  ];
  if (latency.length > 0) {
    const head = [
      'adapter',
      'in flight',
      'writes/s',
      'raw writes/s',
      'p50 ms',
      'p90 ms',
      'p99 ms',
      'raw p50 ms',
      'raw p99 ms',
    ];
    parts.push('\n### Writes: throughput and latency\n\n', table(head, latency));
    parts.push('\npgbench reports an average instead of percentiles; it stands in the column of the raw p50.\n');
  }
  if (others.length > 0) {
    parts.push('\n### Reads and watches: latency\n\n', table(['scenario', 'adapter', 'p50 ms', 'p99 ms'], others));
  }
  return parts.join('');
}
