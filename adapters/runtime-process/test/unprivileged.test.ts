import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';

const runner = fileURLToPath(new URL('./support/suite-runner.js', import.meta.url));
const root = process.getuid?.() === 0;
/** Cases that privileges can change; the nightly run has all. */
const chosen = process.env['KEELSON_TEST_FULL'] === '1' ? [] : ['sandbox', 'container', 'process'];

test('the suite passes for a user without privileges', async (t) => {
  t.timeout(110_000);
  accessSync(runner, constants.R_OK);
  const command = [process.execPath, runner, ...chosen];
  const [program = '', ...args] = root
    ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', ...command]
    : command;
  const env = { PATH: '/usr/bin:/bin:/usr/sbin:/sbin' };
  const { stdout } = await promisify(execFile)(program, args, { env, maxBuffer: 1 << 24, cwd: '/' });
  const results = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { id: string; error?: string });
  t.deepEqual(
    results.filter(({ error }) => error !== undefined),
    [],
  );
  t.log(`${results.length} cases`);
  t.true(results.length >= (chosen.length === 0 ? 90 : 40));
});
