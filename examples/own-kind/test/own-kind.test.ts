import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

test('the program prints the errors of an invalid object and the event of a valid one', async (t) => {
  const { stdout } = await promisify(execFile)(process.execPath, [path('../src/main.js')]);
  const [refused, ...events] = stdout.trim().split('\n');
  t.regex(refused ?? '', /^Backup\.ops\.example\.com "broken" is invalid: \[spec\.database: .*, spec\.keep: .*\]$/);
  t.deepEqual(events, ['ADDED nightly 7']);
});

test('the README shows this program unchanged', async (t) => {
  const readme = await readFile(path('../../../../README.md'), 'utf8');
  for (const name of ['backup.ts', 'main.ts']) {
    const source = await readFile(path(`../../src/${name}`), 'utf8');
    t.true(readme.includes(`\`\`\`ts\n${source}\`\`\``), name);
  }
});
