import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { parseOptions } from '../src/options.ts';
import { peersAgain, peersReport } from '../src/peers/peers-report.ts';
import { runPeers, wantedPeerScenarios } from '../src/peers/run-peers.ts';
import { failedRow, markdown, toRow } from '../src/report/report.ts';
import { runBenchmarks, scenarios } from '../src/run-benchmarks.ts';
import type { Scenario } from '../src/scenarios/scenario.ts';

const tiny = ['--rounds', '1', '--slice', '40', '--objects', '50', '--watchers', '10', '--events', '4'];

/** Scenarios that differ most in their servers, load and agents. The nightly run (`KEELSON_TEST_FULL=1`) has all. */
const few = [
  'create',
  'watch TLS',
  'get beside list and watches',
  'memory per object',
  'plane in the test process',
  'start to first GET',
  'agent: exit to status',
];
const isFull = process.env['KEELSON_TEST_FULL'] === '1';
const chosen = isFull ? scenarios.map(({ name }) => name) : few;
/** Of the scenarios beside other servers: requests, and a watch. */
const chosenPeers = isFull ? [] : ['--scenarios', 'get HTTP/1.1,put HTTP/2,watch HTTP/2'];

test(`${chosen.length} of ${scenarios.length} scenarios run and return figures`, async (t) => {
  t.timeout(300_000);
  const out = await mkdtemp(join(tmpdir(), 'keelson-bench-smoke-'));
  t.teardown(() => rm(out, { recursive: true, force: true }));
  const run = (adapter: string, names: readonly string[]) =>
    runBenchmarks(parseOptions(['--adapters', adapter, '--scenarios', names.join(','), ...tiny], out), () => {});
  // Of the scenarios that run on every adapter, those with a mark of their own for stores that write to disk.
  const durable = scenarios.filter(({ goal }) => goal.durableMark !== undefined).map(({ name }) => name);
  const rows = (await Promise.all([run('memory', chosen), run('lmdb', durable)])).flat();
  t.deepEqual(
    rows.filter((row) => row.verdict === 'failed').map((row) => `${row.scenario}: ${row.remark}`),
    [],
  );
  t.true(durable.length > 0);
  t.is(rows.length, chosen.length + durable.length);
  for (const row of rows)
    t.true(row.ratio >= 0 && Number.isFinite(row.ratio), `${row.adapter} ${row.scenario}: ${row.ratio}`);
  const report = markdown(rows, 'test');
  for (const name of chosen) t.true(report.includes(`| ${name} |`), name);
});

test('scenarios beside other servers return figures over both versions of HTTP', async (t) => {
  t.timeout(120_000);
  const sizes = ['--rounds', '1', '--slice', '40', '--objects', '300', '--watchers', '20', '--events', '4'];
  const options = parseOptions(['--peers', '--adapters', 'memory', ...chosenPeers, ...sizes], '');
  const figures = await runPeers(options, () => {});
  t.deepEqual(
    figures.rows.filter(({ server }) => !(server > 0)).map(({ scenario: name, failed }) => `${name}: ${failed}`),
    [],
  );
  t.deepEqual(
    figures.rows.map((row) => row.scenario),
    wantedPeerScenarios(options).map(({ name }) => name),
  );
  const run = { commit: 'test', words: [], load: [0, 0] } as const;
  const report = peersReport({ ...figures, runs: [run], options });
  const older = { ...(figures.rows[0] as (typeof figures.rows)[number]), scenario: 'older' };
  const merged = peersAgain(
    { ...figures, rows: [older, ...figures.rows], runs: [run], options },
    { ...figures, runs: [run], options },
  );
  t.deepEqual(
    [merged.rows.length, merged.rows[0]?.scenario, merged.runs.length],
    [figures.rows.length + 1, 'older', 2],
  );
  for (const { name } of wantedPeerScenarios(options)) t.true(report['peers.md']?.includes(`| ${name} |`), name);
});

const scenario: Scenario = {
  name: 'x',
  what: 'this beside that',
  goal: { form: 'share', mark: 0.5 },
  everyAdapter: true,
  run: () => Promise.reject(new Error('not run')),
};

test('rounds with a disturbed floor are not counted', (t) => {
  const good = Array.from({ length: 5 }, () => ({ floor: 10, subject: 20 }));
  const row = toRow(scenario, 'memory', {
    unit: 'µs',
    rounds: [...good, { floor: 13, subject: 13 }, { floor: 13, subject: 13 }],
  });
  t.like(row, { ratio: 0.5, rounds: 5, verdict: 'reached' });
});

test('fewer than five valid rounds give no verdict', (t) => {
  const row = toRow(scenario, 'memory', {
    unit: 'µs',
    rounds: Array.from({ length: 4 }, () => ({ floor: 10, subject: 10 })),
  });
  t.like(row, { rounds: 4, verdict: 'no verdict' });
});

test('adapters that write to disk before they respond have a target of their own, where one is defined', (t) => {
  const rounds = Array.from({ length: 5 }, () => ({ floor: 45, subject: 100 }));
  const durable = { ...scenario, goal: { ...scenario.goal, durableMark: 0.4 } };
  t.like(toRow(durable, 'lmdb', { unit: 'µs', rounds }), { mark: '>= 0.4', verdict: 'reached' });
  t.like(toRow(durable, 'memory', { unit: 'µs', rounds }), { mark: '>= 0.5', verdict: 'missed' });
  t.like(toRow(scenario, 'lmdb', { unit: 'µs', rounds }), { mark: '>= 0.5', verdict: 'missed' });
});

test('a failure is reported as a row with its message', (t) => {
  const row = failedRow(scenario, 'memory', new Error('not finished within 3 s'));
  t.true(markdown([row], 'test').includes('| failed |'));
  t.true(markdown([row], 'test').includes('not finished within 3 s'));
});

test('unknown adapters, scenarios and sizes are rejected with a message', async (t) => {
  t.throws(() => parseOptions(['--adapters', 'oracle'], ''), {
    message: /knows memory, lmdb, etcd, postgres, not oracle/,
  });
  t.throws(() => parseOptions(['--rounds', '0'], ''), { message: /--rounds must be a positive whole number/ });
  t.throws(() => parseOptions(['--peers', '--objects', '10'], ''), { message: /--objects must be at least 256/ });
  t.throws(() => wantedPeerScenarios(parseOptions(['--peers', '--scenarios', 'nothing'], '')), {
    message: /--peers knows get/,
  });
  await t.throwsAsync(async () => runBenchmarks(parseOptions(['--scenarios', 'nothing'], ''), () => {}), {
    message: /--scenarios knows get/,
  });
});
