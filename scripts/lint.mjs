// Every static check: format and lint, promises, dependencies between packages and folders, reference pages, structure,
// dead code. Runs all, then fails if any failed.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const bin = (name) => `${root}node_modules/.bin/${name}`;

const checks = [
  ['format and lint', bin('biome'), ['check', '--error-on-warnings', '.']],
  [
    'promises',
    bin('oxlint'),
    ['--type-aware', '--config', '.oxlintrc.json', 'packages', 'adapters', 'test', 'benchmarks'],
  ],
  ['dependencies', process.execPath, ['scripts/dependencies.mjs']],
  ['reference pages', process.execPath, ['scripts/docs.mjs', '--check']],
  ['structure', process.execPath, ['scripts/structure.mjs', '--check']],
  ['files per request', process.execPath, ['scripts/count-path-files.mjs', '--check']],
  ['dead code', bin('knip'), []],
];

const failed = checks.filter(([title, command, args]) => {
  process.stdout.write(`\n== ${title}\n`);
  return spawnSync(command, args, { cwd: root, stdio: 'inherit' }).status !== 0;
});
process.stdout.write(
  failed.length === 0 ? '\nall checks passed\n' : `\nfailed: ${failed.map(([title]) => title).join(', ')}\n`,
);
process.exitCode = failed.length === 0 ? 0 : 1;
