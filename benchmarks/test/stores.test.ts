import test from 'ava';
import { parseOptions } from '../src/options.ts';
import { renewed } from '../src/report/renewed.ts';
import { wholeReport } from '../src/report/whole-report.ts';
import { missingServer } from '../src/stores/database.ts';
import { runStores, storeScenarios } from '../src/stores/run-stores.ts';
import { failedStoreRow, notMeasured, type StoreRow, storeRow } from '../src/stores/store-row.ts';
import type { StoreScenario } from '../src/stores/store-scenario.ts';

const tiny = ['--rounds', '1', '--slice', '30', '--objects', '600'];
/** Without those that start processes or only wait; `idle` represents them on one adapter. */
const quick = storeScenarios.map(({ name }) => name).filter((name) => !/start|memory|idle/.test(name));

const circumstances = { runs: [{ commit: 'test', words: tiny, load: [0, 0] }], missing: {} } as const;

async function measured(adapter: string): Promise<readonly StoreRow[]> {
  const names = adapter === 'memory' ? [...quick, 'store idle with 100 watches'] : quick;
  return runStores(parseOptions(['--adapters', adapter, '--scenarios', names.join(','), ...tiny], ''), () => {});
}

/** A store within the process and one that servers share; the nightly run (`KEELSON_TEST_FULL=1`) measures all. */
const adapters = process.env['KEELSON_TEST_FULL'] === '1' ? ['memory', 'lmdb', 'etcd', 'postgres'] : ['memory', 'etcd'];

for (const adapter of adapters) {
  test(`the store on ${adapter} beside its raw backend`, async (t) => {
    t.timeout(60_000);
    const rows = await measured(adapter);
    t.is(rows.length, adapter === 'memory' ? quick.length + 1 : quick.length);
    const missing = await missingServer(adapter);
    if (missing !== undefined) {
      t.log(`not run: ${missing}`);
      for (const row of rows) t.like(row, { verdict: 'not measured', remark: missing });
      return;
    }
    const replicas = adapter === 'memory' || adapter === 'lmdb' ? 0 : 1;
    t.is(rows.filter(({ verdict }) => verdict === 'not measured').length, 1 - replicas);
    for (const { scenario, verdict, ratio, remark } of rows) {
      if (verdict !== 'not measured') t.true(Number.isFinite(ratio), `${scenario}: ${verdict} ${remark}`);
    }
    const files = wholeReport({ rows: [], stores: rows, circumstances });
    t.deepEqual(Object.keys(files), [
      'report.md',
      'report.json',
      'store-shares.svg',
      'store-times.svg',
      'write-throughput.svg',
      'write-latency.svg',
    ]);
    for (const name of quick) t.true(files['report.md']?.includes(`| ${name} | ${adapter} |`), name);
    for (const [name, text] of Object.entries(files)) t.notRegex(text, /NaN|undefined|Infinity/, name);
  });
}

const scenario = (mark?: number): StoreScenario => ({
  name: 'store write 32',
  what: 'this beside that',
  form: 'share',
  goal: () => (mark === undefined ? undefined : { form: 'share', mark }),
  run: () => Promise.reject(new Error('not run')),
});

const rounds = Array.from({ length: 5 }, () => ({ floor: 10, subject: 20 }));
const measurement = {
  unit: 'µs',
  rounds,
  notes: { 'writes/s': 1, 'raw writes/s': 2, 'p50 ms': 1, 'p90 ms': 2, 'p99 ms': 3, 'raw p50 ms': 1 },
};

test('a figure without a target is shown and not judged, one below its target is a miss that the report lists', (t) => {
  t.like(storeRow(scenario(), 'etcd', measurement), { verdict: 'no mark', mark: '', ratio: 0.5 });
  const missed = storeRow(scenario(0.95), 'etcd', measurement);
  t.is(missed.verdict, 'missed');
  const report = wholeReport({ rows: [], stores: [missed], circumstances })['report.md'] ?? '';
  t.true(report.includes('- store write 32 on etcd: 0.50, promised >= 0.95'));
  t.true(report.includes('1 of 1 figures with a verdict miss their mark'));
});

test('repeated measurements replace the earlier figures, the others remain', (t) => {
  const row = (adapter: string, mark: number) => storeRow(scenario(mark), adapter, measurement);
  const before = { rows: [], stores: [row('etcd', 0.4), row('lmdb', 0.4)], circumstances };
  const now = { rows: [], stores: [row('lmdb', 0.9), row('postgres', 0.9)], circumstances };
  const { stores, circumstances: both } = renewed(before, now);
  t.deepEqual(
    stores.map(({ adapter, verdict }) => `${adapter} ${verdict}`),
    ['etcd reached', 'lmdb missed', 'postgres missed'],
  );
  t.is(both.runs.length, 2);
});

test('missing and failed measurements state the reason', (t) => {
  const stores = [
    notMeasured(scenario(0.95), 'etcd', 'no etcd on this machine'),
    failedStoreRow(scenario(), 'postgres', new Error('it broke <here>')),
  ];
  const missing = { etcd: 'no etcd on this machine' };
  const files = wholeReport({ rows: [], stores, circumstances: { ...circumstances, missing } });
  t.true(files['report.md']?.includes('not measured: no etcd on this machine |'));
  t.true(files['report.md']?.includes('- **etcd**: not measured: no etcd on this machine.'));
  t.true(files['report.md']?.includes('failed: it broke <here>'));
  t.deepEqual(Object.keys(files), ['report.md', 'report.json']);
});
