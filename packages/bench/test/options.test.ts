import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { benchPlan, parseBenchOptions } from '../src/bench-options.ts';
import { htmlReport } from '../src/html-report.ts';
import { type BenchReport, runBench } from '../src/run-bench.ts';

const folder = mkdtempSync(join(tmpdir(), 'keelson-bench-test-'));
test.after.always(() => rmSync(folder, { recursive: true }));

const usage = (message: string | RegExp) => ({ name: 'UsageError', message });

test('without options the storages in memory and on disk are measured; with server URLs only those servers', async (t) => {
  t.deepEqual(benchPlan({}).storages, ['memory:', 'lmdb:']);
  t.deepEqual(benchPlan({ urls: ['http://127.0.0.1:1'] }).storages, []);
  t.true(benchPlan({ quick: true }).roundMs < benchPlan({}).roundMs);
  const words = ['--storage', 'etcd://a:1,b:2', '--storage=memory:', '--scenarios', 'get,list', '--round', '300ms'];
  const { options, out } = await parseBenchOptions(words);
  t.deepEqual(options, { storages: ['etcd://a:1,b:2', 'memory:'], scenarios: ['get', 'list'], roundMs: 300 });
  t.true(out.endsWith('/keelson-bench'));
});

test('an invalid option is rejected with one sentence that names the option', async (t) => {
  const list = join(folder, 'list.yaml');
  writeFileSync(list, 'data: {}\n');
  await t.throwsAsync(
    parseBenchOptions(['--storge', 'memory:']),
    usage('unknown option --storge; did you mean --storage?'),
  );
  await t.throwsAsync(
    parseBenchOptions(['--object', join(folder, 'no')]),
    usage(/^--object .*no cannot be read: ENOENT/),
  );
  await t.throwsAsync(
    parseBenchOptions(['--object', list]),
    usage(`--object ${list} must contain an object with apiVersion and kind`),
  );
  t.throws(() => benchPlan({ scenarios: ['gat'] }), usage('unknown scenario "gat"; did you mean get?'));
  t.throws(() => benchPlan({ kinds: ['./k.js'] }), usage('--kinds requires --object FILE, an object of such a kind'));
  await t.throwsAsync(runBench({ urls: ['localhost:80'] }), usage(/^--url must be an http or https URL/));
  await t.throwsAsync(runBench({ urls: ['http://127.0.0.1:1'] }), usage(/^http:\/\/127.0.0.1:1 cannot be measured: /));
  await t.throwsAsync(runBench({ kubeconfigs: [join(folder, 'no')] }), usage(/^--kubeconfig .*no: /));
  await t.throwsAsync(runBench({}), usage('storages require the option serve, which starts their servers'));
  await t.throwsAsync(runBench({ storages: ['{"path":1}'] }, { serve: ['false'] }), usage(/must contain "adapter"/));
});

test('the report page loads no resources, and texts from servers are escaped', (t) => {
  const result = {
    ...{ scenario: 'get', what: 'GET', subject: '<script>x</script>', p50Ms: 1, p99Ms: 2, failed: 'a & b' },
    perSecond: { median: 1000, least: 900, most: 1100 },
  };
  const report = {
    ...{ date: '2025-01-01', node: 'v20', machine: 'm', subjects: [result.subject], results: [result] },
    plan: { ...benchPlan({}), object: 'ConfigMap of v1' },
  };
  const page = htmlReport(report as unknown as BenchReport);
  t.false(page.includes('<script'));
  t.regex(page, /&lt;script&gt;x/);
  t.regex(page, /a &amp; b/);
  t.regex(page, /1k\/s/);
  t.deepEqual(page.match(/(?:src|href)=/g), null);
});
