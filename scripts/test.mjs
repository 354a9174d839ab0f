// Runs every test, or the files that the arguments name, and ends with one line: `N passed, N failed, N skipped`.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const args = process.argv.slice(2);
const ava = spawn(process.execPath, [`${root}node_modules/ava/entrypoints/cli.mjs`, ...args], {
  cwd: root,
  env: { ...process.env, KEELSON_TEST_GROUPS: args.length === 0 ? '1' : '0' },
  stdio: ['ignore', 'pipe', 'inherit'],
});

/** Longest silence of the runner: well above the time limit of any test. */
const silenceMs = 6 * 60_000;
/** Time for the runner to print the names of the tests that did not finish. */
const reportMs = 30_000;
const watchdog = setTimeout(() => {
  process.stdout.write(`\nno test ended within ${silenceMs / 60_000} minutes: the run is stopped\n`);
  ava.kill('SIGINT');
  setTimeout(() => ava.kill('SIGKILL'), reportMs).unref();
}, silenceMs);

const output = [];
ava.stdout.on('data', (chunk) => {
  watchdog.refresh();
  process.stdout.write(chunk);
  output.push(chunk);
});

ava.on('exit', () => clearTimeout(watchdog));
ava.on('close', (code) => {
  const text = Buffer.concat(output).toString('utf8');
  const count = (pattern) => Number([...text.matchAll(pattern)].at(-1)?.[1] ?? 0);
  // The runner prints the number of passed tests only when no test failed.
  const passed = count(/^ {2}(\d+) tests? passed$/gm) || [...text.matchAll(/^ {2}[✔√] /gm)].length;
  const failed =
    count(/^ {2}(\d+) tests? failed$/gm) +
    count(/^ {2}(\d+) tests? timed out$/gm) +
    count(/^ {2}(\d+) uncaught exceptions?$/gm) +
    count(/^ {2}(\d+) unhandled rejections?$/gm);
  const skipped = count(/^ {2}(\d+) tests? skipped$/gm);
  const failures = failed === 0 && code !== 0 ? 1 : failed;
  process.stdout.write(`\n${passed} passed, ${failures} failed, ${skipped} skipped\n`);
  process.exitCode = code === 0 && passed === 0 ? 1 : (code ?? 1);
});
