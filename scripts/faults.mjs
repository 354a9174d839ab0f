// Fault runs with real servers in full numbers:
// `npm run faults -- [--scale N] [--part NAME[,NAME...]] [--seed N] [--match PATTERN] [--table FILE] [--etcd KIND]
// [--postgres KIND]`. Scale 1 = the counts of docs/explanation/guarantees.md; the same tests run with fewer faults in
// `npm test`. The parts run one after the other, each with its progress; at the end stands a table of verdicts with the
// traffic behind them, which --table writes to a file. Kinds of servers: etcd as `installed` or `newest`, or the path
// of one; PostgreSQL as `installed`, `newest`, `pooled` (PgBouncer) or `crowded` (8 connections).
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Test files and about how many minutes they take at scale 1 on two cores. */
const parts = {
  'kill-server': { files: ['test/dist/test/faults/kill-server.test.js'], minutes: 7 },
  network: { files: ['test/dist/test/faults/network.test.js'], minutes: 3 },
  stalls: { files: ['test/dist/test/faults/stalls.test.js'], minutes: 3 },
  'kept-connections': { files: ['test/dist/test/faults/kept-connections.test.js'], minutes: 2 },
  overload: { files: ['test/dist/test/faults/overload.test.js'], minutes: 0.5 },
  'two-servers-etcd': { files: ['test/dist/test/faults/two-servers-etcd.test.js'], minutes: 20 },
  'two-servers-postgres': { files: ['test/dist/test/faults/two-servers-postgres.test.js'], minutes: 22 },
  'etcd-cluster': { files: ['test/dist/test/faults/etcd-cluster.test.js'], minutes: 4 },
  abuse: { files: ['test/dist/test/faults/abuse.test.js'], minutes: 10 },
  adapters: {
    files: ['adapters/storage-{etcd3,postgres}/dist/test/{faults,restored,several-servers,variants}.test.js'],
    minutes: 4,
  },
  delays: { files: ['adapters/storage-{etcd3,postgres}/dist/test/delays.test.js'], minutes: 9 },
};

const say = (text) => process.stderr.write(`${text}\n`);

function usage(text) {
  say(text);
  process.exit(2);
}

const { values } = parseArgs({
  options: {
    scale: { type: 'string', default: '1' },
    part: { type: 'string' },
    seed: { type: 'string' },
    match: { type: 'string' },
    table: { type: 'string' },
    etcd: { type: 'string' },
    postgres: { type: 'string' },
  },
});
const scale = Number(values.scale);
if (!(scale > 0)) usage('--scale must be a number greater than 0');
const kinds = ['installed', 'newest', 'pooled', 'crowded'];
if (values.postgres !== undefined && !kinds.includes(values.postgres))
  usage(`--postgres must be one of ${kinds.join(', ')}`);
const chosen = values.part === undefined ? Object.keys(parts) : values.part.split(',');
const unknown = chosen.find((name) => !Object.hasOwn(parts, name));
if (unknown !== undefined) usage(`there is no part ${unknown}; there are ${Object.keys(parts).join(', ')}`);

const folder = mkdtempSync(join(tmpdir(), 'keelson-faults-'));
const minutes = (ms) => `${(ms / 60_000).toFixed(1)} min`;
const expected = (names) => names.reduce((sum, name) => sum + parts[name].minutes * Math.max(scale, 0.1) * 60_000, 0);

/** Runs the files of a part; returns its exit code, its verdicts, and the duration. */
async function run(name) {
  const report = join(folder, `${name}.jsonl`);
  const match = values.match === undefined ? [] : ['--match', values.match];
  const args = ['--concurrency', '1', '--timeout', '6h', ...match, ...parts[name].files];
  const began = Date.now();
  const ava = spawn(process.execPath, [`${root}node_modules/ava/entrypoints/cli.mjs`, ...args], {
    cwd: root,
    stdio: 'inherit',
    env: {
      ...process.env,
      KEELSON_FAULT_SCALE: values.scale,
      KEELSON_FAULT_PROGRESS: '1',
      KEELSON_FAULT_REPORT: report,
      ...(values.seed === undefined ? {} : { KEELSON_SEED: values.seed }),
      ...(values.etcd === undefined ? {} : { KEELSON_TEST_ETCD: values.etcd }),
      ...(values.postgres === undefined ? {} : { KEELSON_TEST_POSTGRES: values.postgres }),
    },
  });
  const code = await new Promise((resolve) => ava.on('close', (status) => resolve(status ?? 1)));
  const lines = existsSync(report) ? readFileSync(report, 'utf8').trimEnd().split('\n') : [];
  return { name, code, ms: Date.now() - began, verdicts: lines.map((line) => JSON.parse(line)) };
}

const cells = (row) => `| ${row.join(' | ')} |`;

function tableOf(results) {
  const head = ['part', 'minutes', 'faults', 'verdict', 'acknowledged writes', 'of unknown outcome', 'reads and pages'];
  const rest = ['watch sessions', 'resumed', 'events', 'told 410', 'seed'];
  const rows = results.flatMap(({ name, code, ms, verdicts }) => {
    const took = (ms / 60_000).toFixed(1);
    if (verdicts.length === 0)
      return [[name, took, '', code === 0 ? 'passed' : 'failed', '', '', '', '', '', '', '', '']];
    return verdicts.map(({ faults, verdict, counts, seed }) => [
      name,
      took,
      faults,
      code === 0 ? verdict : `${verdict} (failed)`,
      counts.acknowledged,
      counts.unknown,
      counts.gets + counts.pages,
      counts.sessions,
      counts.resumed,
      counts.events,
      counts.gone,
      seed,
    ]);
  });
  return [cells([...head, ...rest]), `|${[...head, ...rest].map(() => '---').join('|')}|`, ...rows.map(cells)].join(
    '\n',
  );
}

const results = [];
try {
  for (const [index, name] of chosen.entries()) {
    say(`[${index + 1}/${chosen.length}] ${name}; about ${minutes(expected(chosen.slice(index)))} left in all`);
    results.push(await run(name));
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
const table = tableOf(results);
process.stdout.write(`\n${table}\n`);
if (values.table !== undefined) writeFileSync(values.table, `${table}\n`);
process.exitCode = results.every(({ code }) => code === 0) ? 0 : 1;
