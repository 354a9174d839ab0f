import { cpus, totalmem } from 'node:os';
import { Plot, short } from '@keelson/bench/internal';
import { median } from '../measure/statistics.ts';
import type { BenchOptions } from '../options.ts';
import type { ReportFiles, Run } from '../report/whole-report.ts';
import type { PeerFigures, PeerRow } from './run-peers.ts';
import { peerKinds } from './start-peer.ts';

/** What differs between the servers beyond their code, or is equal although a reader may not expect it. */
const configuration: readonly (readonly [what: string, keelson: string, kubernetes: string])[] = [
  ['version', 'the commit above', 'kube-apiserver 1.34.2, etcd 3.6.16, kine 0.17.5, built from their Go modules'],
  ['store on etcd', 'the same etcd program with an instance and data folder of its own', 'the same'],
  [
    'store on Postgres',
    'the same PostgreSQL program, instance and database of its own, commits flushed to disk',
    'the same, through kine in a process of its own; its CPU time is part of the store',
  ],
  [
    'managed fields',
    'recorded from the first apply of an object on; these objects are never applied',
    'recorded by every write, cannot be switched off',
  ],
  ['priority and fairness', 'on, as by default', 'on, as by default'],
  ['authentication', 'bearer token of a file', 'the same'],
  ['authorization', 'Node,RBAC; a ClusterRoleBinding of the user to cluster-admin', 'the same'],
  ['audit', 'off, as by default', 'off, as by default'],
  ['admission', 'built-in plugins, as by default', 'built-in plugins, as by default'],
  ['controllers', 'none (`--controllers false`)', 'none; the loops inside kube-apiserver run, as by default'],
  [
    'reads without resourceVersion',
    'from the cache after a check with the store',
    'GETs from the store, lists from the cache after a check with the store',
  ],
  ['TLS', 'version 1.3, certificate of the server, no client certificate', 'the same'],
  ['cores', 'the server on one core, the load on the other, the store on both', 'the same'],
];

const table = (head: readonly string[], body: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...body].map((cells) => `| ${cells.join(' | ')} |\n`).join('');

const total = ({ server, store }: { readonly server: number; readonly store: number }): number => server + store;

/** The sum of server and store, and its parts. */
function costOf(row: PeerRow | undefined): string {
  if (row === undefined) return '';
  if (row.failed !== undefined || row.slices.length === 0) return 'failed';
  return row.store === 0 ? short(row.server) : `${short(total(row))} (${short(row.server)} + ${short(row.store)})`;
}

/** The least and greatest sum of a slice. */
function spreadOf(row: PeerRow | undefined): string {
  const sums = row?.slices.map(total) ?? [];
  return sums.length === 0 ? '' : `${short(Math.min(...sums))} to ${short(Math.max(...sums))}`;
}

/** Median and 99th percentile of latencies, as medians of the slices. */
function latencyOf(row: PeerRow | undefined): string {
  const slices = row?.slices ?? [];
  const middle = (of: 'p50Ms' | 'p99Ms') => short(median(slices.map((slice) => slice[of])));
  return slices.length === 0 ? '' : `${middle('p50Ms')}, ${middle('p99Ms')}`;
}

/** How many times the cost of Keelson the other server costs, stores included. */
function timesOf(rows: readonly PeerRow[], other: string, own: string): string {
  const find = (peer: string) => rows.find((row) => row.peer === peer && row.failed === undefined);
  const [dividend, divisor] = [find(other), find(own)];
  return dividend === undefined || divisor === undefined ? '' : `${short(total(dividend) / total(divisor))} x`;
}

/** Servers with the same store, of which the second one is not Keelson. */
const pairs = peerKinds.flatMap((kind) => {
  const own = peerKinds.find(({ adapter, programs }) => adapter === kind.adapter && programs.length === 0);
  return kind.programs.length === 0 || own === undefined ? [] : [[own, kind] as const];
});

const width = 900;
const left = 210;
const right = 130;
const barHeight = 13;
const groupGap = 24;
const top = 60;
const serverColours: Readonly<Record<string, string>> = {
  memory: '#7a7a7a',
  lmdb: '#009e73',
  etcd: '#0072b2',
  postgres: '#d55e00',
};
const storeColour = '#bbbbbb';

/** A group of bars for each scenario, as long as its most expensive server; the store's part is grey. */
function plotPeers(scenarios: readonly string[], rows: readonly PeerRow[]): string {
  const groups = scenarios.map((name) => rows.filter(({ scenario, slices }) => scenario === name && slices.length > 0));
  const bars = groups.reduce((sum, group) => sum + group.length, 0);
  const plot = new Plot(width, top + bars * barHeight + groups.length * groupGap);
  plot.text(16, 24, 'CPU µs per operation: server, and its store in grey (less is better)', { size: 15, bold: true });
  plot.text(16, 42, 'each scenario has a scale of its own; solid colours by store, outlined names are kube-apiserver', {
    size: 11,
  });
  let y = top;
  for (const [index, group] of groups.entries()) {
    plot.text(16, y + 8, scenarios[index] ?? '', { bold: true });
    y += 14;
    const longest = Math.max(...group.map(total), Number.MIN_VALUE);
    const length = (value: number) => (value / longest) * (width - left - right);
    for (const row of group) {
      const adapter = peerKinds.find(({ name }) => name === row.peer)?.adapter ?? '';
      plot.text(left - 8, y + barHeight - 3, row.peer, { anchor: 'end', size: 11 });
      plot.bar(left, y + 1, length(row.server), barHeight - 3, serverColours[adapter] ?? '#000000');
      plot.bar(left + length(row.server), y + 1, length(row.store), barHeight - 3, storeColour);
      plot.text(left + length(total(row)) + 6, y + barHeight - 3, `${short(total(row))} µs`, { size: 10 });
      y += barHeight;
    }
    y += groupGap - 14;
  }
  return plot.toString();
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

/** Figures with the calls of the command that gave them. */
export interface PeerRecord extends PeerFigures {
  readonly runs: readonly Run[];
  /** Sizes of the first call; the words of the others state theirs. */
  readonly options: Pick<BenchOptions, 'objects' | 'watchers' | 'rounds' | 'sliceMs'>;
}

/** The figures of before, but for those of servers and scenarios that were measured again. */
export function peersAgain(before: PeerRecord, now: PeerRecord): PeerRecord {
  const again = (row: PeerRow) => now.rows.some(({ peer, scenario }) => peer === row.peer && scenario === row.scenario);
  const names = [...before.rows, ...now.rows].map(({ scenario }) => scenario);
  const rows = [...before.rows.filter((row) => !again(row)), ...now.rows];
  return {
    ...now,
    rows: rows.sort((a, b) => names.indexOf(a.scenario) - names.indexOf(b.scenario)),
    memory: before.memory,
    options: before.options,
    runs: [...before.runs, ...now.runs],
  };
}

/** One table with every server, plots, and the differences in configuration. */
export function peersReport(record: PeerRecord): ReportFiles {
  const { rows, memory, missing, runs, options } = record;
  const { objects, watchers, rounds, sliceMs } = options;
  const scenarios = [...new Set(rows.map(({ scenario }) => scenario))];
  const peers = peerKinds.map(({ name }) => name).filter((name) => rows.some(({ peer }) => peer === name));
  const shown = pairs.filter(([own, other]) => peers.includes(own.name) && peers.includes(other.name));
  const find = (scenario: string, name: string) => rows.find((row) => row.scenario === scenario && row.peer === name);
  const cells = (scenario: string, text: (row: PeerRow | undefined) => string) => [
    scenario,
    ...peers.map((name) => text(find(scenario, name))),
  ];
  const line = (scenario: string): string[] => {
    const of = rows.filter((row) => row.scenario === scenario);
    return [...cells(scenario, costOf), ...shown.map(([own, other]) => timesOf(of, other.name, own.name))];
  };
  const failures = rows.filter(({ failed }) => failed !== undefined);
  const what = [...new Map(rows.map((row) => [row.scenario, row.what]))];
  const machine = `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown processor'}, ${Math.round(totalmem() / 1e9)} GB, Node ${process.versions.node}`;
  const text = [
    '# Keelson beside kube-apiserver\n\n',
    `${machine}.\n\n`,
    ...runs.map(
      ({ commit, words, load }) =>
        `Commit ${commit}; load of the machine (average of a minute) ${load[0].toFixed(1)} when the run began, ${load[1].toFixed(1)} when it ended, its own included:\n\n    npm run bench -- ${words.join(' ')}\n\n`,
    ),
    `CPU µs per operation (server + its store): medians of ${rounds} slices of ${sliceMs} ms, in which the servers took turns. `,
    `All servers had ${objects} ConfigMaps of 1.2 KB before the first slice, and ${watchers} watchers in \`watch\`. The same load process asks all of them, over TLS.\n\n`,
    table(['scenario', ...peers, ...shown.map(([own, other]) => `${other.name} / ${own.name}`)], scenarios.map(line)),
    '\n![CPU per operation of every server](peers.svg)\n\n',
    ...what.map(([name, words]) => `- **${name}**: ${words}.\n`),
    ...failures.map(({ peer, scenario, failed }) => `- **${scenario} on ${peer} failed**: ${failed}.\n`),
    ...Object.entries(missing).map(([name, reason]) => `- **${name}** was not measured: ${reason}.\n`),
    '\n## Differences in configuration\n\n',
    table(['', 'Keelson', 'Kubernetes'], configuration),
    '\n## Spread\n\nLeast to most CPU µs per operation in a slice, stores included.\n\n',
    table(
      ['scenario', ...peers],
      scenarios.map((scenario) => cells(scenario, spreadOf)),
    ),
    '\n## Latency\n\nMedian and 99th percentile in ms of requests, and of deliveries in `watch`, with the clients above; the server had one core.\n\n',
    table(
      ['scenario', ...peers],
      scenarios.map((scenario) => cells(scenario, latencyOf)),
    ),
    '\n## Memory\n\nResident at the end of the run, without mapped files.\n\n',
    table(
      ['', 'server', 'store'],
      Object.entries(memory).map(([name, { server, store }]) => [
        name,
        megabytes(server),
        store === 0 ? '' : megabytes(store),
      ]),
    ),
  ].join('');
  return {
    'peers.md': text,
    'peers.json': `${JSON.stringify(record, null, 2)}\n`,
    'peers.svg': plotPeers(scenarios, rows),
  };
}
