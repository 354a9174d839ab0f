// Runs every test and ends with one line: `N passed, N failed, N skipped`.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const ava = spawn(process.execPath, [`${root}node_modules/ava/entrypoints/cli.mjs`, ...process.argv.slice(2)], {
  cwd: root,
  stdio: ['ignore', 'pipe', 'inherit'],
});

let tail = '';
ava.stdout.on('data', (chunk) => {
  process.stdout.write(chunk);
  tail = (tail + chunk.toString('utf8')).slice(-20_000);
});

const count = (pattern) => Number(pattern.exec(tail)?.[1] ?? 0);

ava.on('close', (code) => {
  const passed = count(/(\d+) tests? passed/);
  const failed =
    count(/(\d+) tests? failed/) +
    count(/(\d+) tests? timed out/) +
    count(/(\d+) uncaught exception/) +
    count(/(\d+) unhandled rejection/);
  const skipped = count(/(\d+) tests? skipped/);
  const failures = failed === 0 && code !== 0 ? 1 : failed;
  process.stdout.write(`\n${passed} passed, ${failures} failed, ${skipped} skipped\n`);
  process.exitCode = code === 0 && passed === 0 ? 1 : (code ?? 1);
});
