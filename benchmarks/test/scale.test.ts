import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { fitOf } from '../src/scale/growth.ts';
import type { PartResult } from '../src/scale/scale-report.ts';

const run = promisify(execFile);
const program = fileURLToPath(new URL('../src/scale/scale.js', import.meta.url));

test('the line fitted to collinear points is exact', (t) => {
  const points = [1, 2, 5].map((x) => ({ x, figures: { a: 3 + 2 * x } }));
  const { base, slope, r2 } = fitOf(points, 'a');
  t.deepEqual([base, slope, r2].map(Math.round), [3, 2, 1]);
});

test('every part grows to its last step, and returns finite figures at each step', async (t) => {
  t.timeout(120_000);
  const out = await mkdtemp(join(tmpdir(), 'keelson-scale-test-'));
  t.teardown(() => rm(out, { recursive: true, force: true }));
  const sizes = ['--objects', '100', '--watches', '40', '--shared', '20', '--list', '50', '--slice', '40'];
  await run(process.execPath, [program, '--parts', 'objects,watches,list', ...sizes, '--out', out]);
  const results = JSON.parse(await readFile(join(out, 'scale.json'), 'utf8')) as PartResult[];
  t.deepEqual(
    results.map(({ name, points, ended }) => [name, points.at(-1)?.x, points.length, ended]),
    [
      ['objects', 100, 10, undefined],
      ['watches', 40, 10, undefined],
      ['list', 50, 10, undefined],
    ],
  );
  for (const { name, points } of results)
    for (const { x, figures } of points)
      for (const [figure, value] of Object.entries(figures))
        t.true(Number.isFinite(value), `${name} ${x} ${figure}: ${value}`);
  t.true((await readFile(join(out, 'scale.md'), 'utf8')).includes('slope per 1,000 watches'));
});

test('unknown parts and sizes are rejected with exit code 2', async (t) => {
  const rejected = await t.throwsAsync(run(process.execPath, [program, '--parts', 'nothing']));
  t.like(rejected, { code: 2, stderr: 'scale: --parts knows objects, watches, list, writes, not nothing\n' });
  const shared = ['--watches', '20', '--shared', '30'];
  t.like(await t.throwsAsync(run(process.execPath, [program, ...shared])), {
    code: 2,
    stderr: 'scale: --shared must be at most --watches, 20, not 30\n',
  });
});
