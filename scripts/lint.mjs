// Every static check: format and lint, promises, dependencies between packages and folders, reference pages, structure,
// packages, dead code. Runs as many at a time as there are processors, prints the output of each when it ends, and
// fails if any failed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const bin = (name) => `${root}node_modules/.bin/${name}`;

/** The checks: name, program and arguments. Those that take the longest time are first. */
const checks = [
  [
    'promises',
    bin('oxlint'),
    ['--type-aware', '--config', '.oxlintrc.json', 'packages', 'adapters', 'test', 'benchmarks'],
  ],
  ['dead code', bin('knip'), []],
  ['files per request', process.execPath, ['scripts/count-path-files.mjs', '--check']],
  ['format and lint', bin('biome'), ['check', '--error-on-warnings', '.']],
  ['dependencies', process.execPath, ['scripts/dependencies.mjs']],
  ['reference pages', process.execPath, ['scripts/docs.mjs', '--check']],
  ['packages', process.execPath, ['scripts/check-packages.mjs']],
  ['runtime closure', process.execPath, ['scripts/closure.mjs', '--check']],
  ['structure', process.execPath, ['scripts/structure.mjs', '--check']],
];

/** The type checker of `promises` is a Go program; with garbage collected half as often it needs a fifth less time. */
const env = { ...process.env, GOGC: '200' };

const failed = [];

async function run([title, command, args]) {
  const started = performance.now();
  const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk));
  const [code] = await once(child, 'close');
  if (code !== 0) failed.push(title);
  process.stdout.write(`\n== ${title} (${((performance.now() - started) / 1000).toFixed(1)} s)\n`);
  process.stdout.write(Buffer.concat(output));
}

const waiting = [...checks];
await Promise.all(
  Array.from({ length: availableParallelism() }, async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await run(next);
  }),
);
process.stdout.write(failed.length === 0 ? '\nall checks passed\n' : `\nfailed: ${failed.join(', ')}\n`);
process.exitCode = failed.length === 0 ? 0 : 1;
