import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { buildGoTest } from '@keelson/test-support';
import test from 'ava';
import { cleanEnvironment, runKeelson, temporaryDirectory } from '../../src/keelson-process.ts';

// A suite of controller-runtime, compiled from its published modules: test/tools/envtest-suite.

const suite = process.env['KEELSON_TEST_ENVTEST_SUITE'] ?? buildGoTest('envtest-suite');
if (suite === undefined && process.env['CI'] !== undefined)
  throw new Error('no envtest-suite: install Go so that it can be built, or name one in KEELSON_TEST_ENVTEST_SUITE');
const withGo = suite === undefined ? test.skip : test;
const skipped = suite === undefined ? ' [not run, Go is not installed]' : '';

withGo(`a suite of controller-runtime that uses envtest passes unchanged${skipped}`, async (t) => {
  t.timeout(180_000);
  const assets = await temporaryDirectory();
  t.teardown(() => rm(assets, { recursive: true }));
  t.is((await runKeelson(['envtest', assets])).code, 0);
  const folder = fileURLToPath(new URL('../../../tools/envtest-suite/', import.meta.url));
  const output = await new Promise<string>((resolve) => {
    const options = { cwd: folder, env: cleanEnvironment({ KUBEBUILDER_ASSETS: assets }), timeout: 170_000 };
    execFile(suite ?? '', ['-test.v'], options, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
  const results = [...output.matchAll(/^\s*--- (PASS|FAIL|SKIP): (\w+)/gm)].map(
    ([, result, name]) => `${name} ${result}`,
  );
  t.deepEqual(
    results.filter((line) => !line.endsWith(' PASS') && line !== 'TestKubectlIsConfigured SKIP'),
    [],
    output,
  );
  t.true(results.length >= 4, output);
});
