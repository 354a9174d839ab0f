import { mkdtempSync, rmSync } from 'node:fs';
import { chmod, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '@keelson/core/internal';
import { FakeClock, silentLogger } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import { parseTokenFile, tokenUsers } from '../../src/authentication/token-file.ts';
import { filePollMs, WatchedFile } from '../../src/authentication/watched-file.ts';

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

const tokenFile = (t: ExecutionContext) => {
  const folder = mkdtempSync(join(tmpdir(), 'keelson-tokens-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  return join(folder, 'tokens.csv');
};

test('a token finds its user; tokens that are unknown, or for another audience, find none', (t) => {
  const find = tokenUsers(parseTokenFile('s-admin,ann,1,system:masters\ns-jane,jane,7,dev\n', 'x'));
  t.deepEqual(find('s-jane', []), { user: { name: 'jane', uid: '7', groups: ['dev', 'system:authenticated'] } });
  for (const token of ['', 's-jan', 's-janes', 'S-JANE']) t.is(find(token, []), undefined, token);
  t.is(find('s-jane', ['elsewhere']), undefined);
});

test('a warning is logged for a secret file that others may read; a file that cannot be read is refused', async (t) => {
  const path = tokenFile(t);
  await writeFile(path, 'secret,jane,1\n', { mode: 0o600 });
  const warned: string[] = [];
  const logger = { ...silentLogger, warn: (message: string) => void warned.push(message) };
  const options = { source: `--x ${path}`, path, secret: true, parse: String, clock: new FakeClock(), logger };
  t.is((await WatchedFile.open(options)).value, 'secret,jane,1\n');
  t.deepEqual(warned, []);
  await chmod(path, 0o640);
  await WatchedFile.open(options);
  t.regex(warned[0] ?? '', /chmod 600/);
  await t.throwsAsync(WatchedFile.open({ ...options, path: `${path}.no` }), {
    instanceOf: UsageError,
    message: /^--x .* cannot be read: /,
  });
});

test('a changed file is loaded; while it is invalid the previous content remains, and the problem is logged once', async (t) => {
  const path = tokenFile(t);
  await writeFile(path, '1');
  const clock = new FakeClock();
  const problems: unknown[] = [];
  const logger = { ...silentLogger, error: (_: string, fields?: object) => void problems.push(fields) };
  const parse = (content: Buffer) => {
    if (!/^\d+$/.test(String(content))) throw new UsageError('not a number');
    return Number(content);
  };
  const changes: number[] = [];
  const onChange = (value: number) => void changes.push(value);
  const file = await WatchedFile.open({ source: '--x F', path, parse, onChange, clock, logger });
  t.teardown(() => file.stop());
  const poll = () => clock.advance(filePollMs);
  const eventually = async (condition: () => boolean) => {
    for (const deadline = Date.now() + 30_000; !condition(); ) {
      if (Date.now() > deadline) throw new Error('not met within 30 s');
      poll();
      await new Promise(setImmediate);
    }
  };
  await writeFile(path, 'broken');
  await eventually(() => problems.length > 0);
  for (let i = 0; i < 3; i += 1) {
    poll();
    await new Promise(setImmediate);
  }
  await rm(path);
  await eventually(() => problems.length > 1);
  t.is(file.value, 1);
  await writeFile(path, '42');
  await eventually(() => file.value === 42);
  t.deepEqual(problems[0], { source: '--x F', problem: 'not a number' });
  t.is(problems.length, 2, 'one for the invalid content, one for the missing file');
  t.deepEqual(changes, [42]);
});
