import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';

test('the own adapter is measured beside the built-in ones', async (t) => {
  t.timeout(240_000);
  const main = fileURLToPath(new URL('../src/main.js', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [main, '50'], { timeout: 230_000 });
  for (const scenario of ['create', 'get']) {
    const lines = stdout.split('\n').filter((line) => line.startsWith(`${scenario} on `));
    t.is(lines.length, 3, stdout);
    for (const line of lines) t.regex(line, /: [1-9]\d*\/s$/);
  }
});
