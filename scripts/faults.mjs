// Fault runs with real servers in full numbers: `npm run faults -- [--scale N] [--seed N] [--match PATTERN] [file ...]`.
// Scale 1 = the counts of docs/explanation/guarantees.md; the same tests run with fewer faults in `npm test`.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { scale: { type: 'string', default: '1' }, seed: { type: 'string' }, match: { type: 'string' } },
});
if (!(Number(values.scale) > 0)) {
  process.stderr.write('--scale must be a number greater than 0\n');
  process.exit(2);
}

const files = positionals.length > 0 ? positionals : ['test/dist/test/faults/**'];
const match = values.match === undefined ? [] : ['--match', values.match];
const args = ['--concurrency', '1', '--timeout', '6h', ...match, ...files];
const ava = spawn(process.execPath, [`${root}node_modules/ava/entrypoints/cli.mjs`, ...args], {
  cwd: root,
  stdio: 'inherit',
  env: {
    ...process.env,
    KEELSON_FAULT_SCALE: values.scale,
    KEELSON_FAULT_PROGRESS: '1',
    ...(values.seed === undefined ? {} : { KEELSON_SEED: values.seed }),
  },
});
ava.on('close', (code) => {
  process.exitCode = code ?? 1;
});
