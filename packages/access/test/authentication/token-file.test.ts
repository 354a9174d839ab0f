import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '@keelson/core/internal';
import { silentLogger } from '@keelson/core/runtime';
import test from 'ava';
import { parseTokenFile, readTokenFile } from '../../src/authentication/token-file.ts';

test('a line is a token, its user, uid, and groups in quotes', (t) => {
  const text = '\uFEFFs3cret,jane,7,"dev,ops"\r\n\n"a""b", bob ,,\nplain,ann,9\none,kim,1,dev\n';
  t.deepEqual(parseTokenFile(text, 'x'), [
    { token: 's3cret', user: { name: 'jane', uid: '7', groups: ['dev', 'ops', 'system:authenticated'] } },
    { token: 'a"b', user: { name: 'bob', groups: ['system:authenticated'] } },
    { token: 'plain', user: { name: 'ann', uid: '9', groups: ['system:authenticated'] } },
    { token: 'one', user: { name: 'kim', uid: '1', groups: ['dev', 'system:authenticated'] } },
  ]);
});

for (const [title, text, message] of [
  ['too few columns', 'ok,a,1\nsecret,jane', 'x, line 2: must contain token,user,uid and optionally groups'],
  [
    'groups without quotes',
    'secret,jane,1,a,b',
    'x, line 1: has more than four columns; several groups must be quoted: token,user,uid,"group1,group2"',
  ],
  ['no token', ',jane,1', 'x, line 1: the token must be printable characters without spaces'],
  ['a token with a space', 'se cret,jane,1', 'x, line 1: the token must be printable characters without spaces'],
  ['a token that no header holds', `${'s'.repeat(8193)},jane,1`, 'x, line 1: the token has more than 8192 characters'],
  ['no user', 'secret,,1', 'x, line 1: the user has no name'],
  ['a token twice', 'secret,jane,1\n\nsecret,bob,2', 'x, line 3: the token is already used in line 1'],
  [
    'an open quote',
    'secret,jane,1,"a',
    'x, line 1: quotes must enclose a whole column, and quotes within a column must be doubled',
  ],
  [
    'a quote in the middle',
    'sec"ret,jane,1',
    'x, line 1: quotes must enclose a whole column, and quotes within a column must be doubled',
  ],
  ['nothing', '\n', 'x contains no token; the format of a line is token,user,uid,"group1,group2"'],
] as const) {
  test(`refused: ${title}, with its line and without the token`, (t) => {
    const error = t.throws(() => parseTokenFile(text, 'x'), { instanceOf: UsageError });
    t.is(error?.message, message);
    t.false(error?.message.includes('secret'));
  });
}

test('--token-auth-file that others may read is warned of, one that cannot be read is refused', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-tokens-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'tokens.csv');
  await writeFile(path, 'secret,jane,1\n', { mode: 0o600 });
  const warned: string[] = [];
  const logger = { ...silentLogger, warn: (message: string) => void warned.push(message) };
  t.is((await readTokenFile(path, logger)).length, 1);
  t.deepEqual(warned, []);
  await chmod(path, 0o640);
  await readTokenFile(path, logger);
  t.regex(warned[0] ?? '', /chmod 600/);
  await t.throwsAsync(readTokenFile(join(folder, 'no'), logger), {
    instanceOf: UsageError,
    message: /^--token-auth-file .*\/no cannot be read: /,
  });
});
