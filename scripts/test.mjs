// Runs every test, or the files that the arguments name, and ends with one line: `N passed, N failed, N skipped`.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const args = process.argv.slice(2);
/** The whole suite runs in two parts beside each other; see ava.config.js. */
const parts = args.length === 0 ? ['modules', 'bundles'] : [undefined];

/** Longest silence of the runner: well above the time limit of any test. */
const silenceMs = 6 * 60_000;
/** Time for the runner to print the names of the tests that did not finish. */
const reportMs = 30_000;

/** Runs the tests of a part, and resolves with the exit code and the output. */
function run(part) {
  const { KEELSON_TEST_PART: _, ...environment } = process.env;
  const ava = spawn(process.execPath, [`${root}node_modules/ava/entrypoints/cli.mjs`, ...args], {
    cwd: root,
    env: part === undefined ? environment : { ...environment, KEELSON_TEST_PART: part },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const watchdog = setTimeout(() => {
    process.stdout.write(`\nno test ended within ${silenceMs / 60_000} minutes: the run is stopped\n`);
    ava.kill('SIGINT');
    setTimeout(() => ava.kill('SIGKILL'), reportMs).unref();
  }, silenceMs);
  const output = [];
  let line = '';
  ava.stdout.on('data', (chunk) => {
    watchdog.refresh();
    output.push(chunk);
    // Whole lines: two parts write at the same time.
    const text = line + chunk;
    const end = text.lastIndexOf('\n') + 1;
    process.stdout.write(text.slice(0, end));
    line = text.slice(end);
  });
  ava.on('exit', () => clearTimeout(watchdog));
  return new Promise((resolve) => {
    ava.on('close', (code) => resolve({ code, text: Buffer.concat(output).toString('utf8') }));
  });
}

/** Counts the tests of a part by what the runner has printed. */
function countsOf({ code, text }) {
  const count = (pattern) => Number([...text.matchAll(pattern)].at(-1)?.[1] ?? 0);
  // The runner prints the number of passed tests only when no test failed.
  const passed = count(/^ {2}(\d+) tests? passed$/gm) || [...text.matchAll(/^ {2}[✔√] /gm)].length;
  const failed =
    count(/^ {2}(\d+) tests? failed$/gm) +
    count(/^ {2}(\d+) tests? timed out$/gm) +
    count(/^ {2}(\d+) uncaught exceptions?$/gm) +
    count(/^ {2}(\d+) unhandled rejections?$/gm);
  const skipped = count(/^ {2}(\d+) tests? skipped$/gm);
  const isFailure = code !== 0 || passed === 0;
  return { passed, failed: failed === 0 && isFailure ? 1 : failed, skipped };
}

const counts = (await Promise.all(parts.map(run))).map(countsOf);
const sum = (name) => counts.reduce((total, part) => total + part[name], 0);
process.stdout.write(`\n${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped\n`);
process.exitCode = sum('failed') === 0 ? 0 : 1;
