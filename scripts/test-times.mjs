// Runs test files and prints how much wall time and processor time each of them needed, the longest first. Arguments
// are those of `npx ava`. Daemons that detach themselves are not part of the processor time.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'keelson-times-'));
const records = join(folder, 'times');
const { status } = spawnSync(process.execPath, [`${root}scripts/test.mjs`, ...process.argv.slice(2)], {
  env: { ...process.env, KEELSON_TEST_TIMES: records },
  stdio: 'inherit',
});
const lines = existsSync(records) ? readFileSync(records, 'utf8').trim().split('\n') : [];
rmSync(folder, { recursive: true });

const seconds = (ms) => (ms / 1000).toFixed(1).padStart(7);
const row = ({ wallMs, own, children }, title) => `${seconds(wallMs)} ${seconds(own)} ${seconds(children)}  ${title}\n`;
const files = lines.map((line) => JSON.parse(line)).sort((one, other) => other.wallMs - one.wallMs);
const sum = (name) => files.reduce((total, file) => total + file[name], 0);
process.stdout.write('\n   wall     own children  seconds\n');
for (const file of files) process.stdout.write(row(file, relative(root, fileURLToPath(file.file))));
process.stdout.write(row({ wallMs: sum('wallMs'), own: sum('own'), children: sum('children') }, 'all files'));
process.exitCode = status ?? 1;
