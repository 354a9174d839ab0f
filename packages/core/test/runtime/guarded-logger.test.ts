import test from 'ava';
import { guardedLogger } from '../../src/runtime/guarded-logger.ts';
import type { LogFields } from '../../src/runtime/logger.ts';
import { safeLogFields } from '../../src/runtime/safe-log-fields.ts';

const canary = 'CANARY-0123456789';

/** Everything that would hold the canary: as it is, and as the bytes of a buffer in JSON. */
function leaks(line: string): boolean {
  const bytes = JSON.stringify([...Buffer.from(canary)]).slice(1, -1);
  return (
    line.includes(canary) || line.includes(bytes) || line.includes(Buffer.from(canary).toString('base64').slice(0, 20))
  );
}

const packet = Buffer.from(`GET / HTTP/1.1\r\nAuthorization: Bearer ${canary}\r\n\r\n`);
const secrets: Record<string, LogFields> = {
  'a raw packet on an error': { err: Object.assign(new Error('Parse Error'), { rawPacket: packet, reason: 'x' }) },
  'a buffer': { body: packet },
  'a header in a text': { text: String(packet) },
  'headers as an object': { request: { headers: { authorization: `Bearer ${canary}` } } },
  'headers as a list': { rawHeaders: ['Authorization', `Bearer ${canary}`] },
  'a token in a message': { err: new Error(`the token "Bearer ${canary}" is not known`) },
  'the cause of a cause': { err: new Error('a', { cause: new Error('b', { cause: { token: canary } }) }) },
  'basic credentials': { header: `basic ${canary}` },
  'a cookie': { line: `Cookie: session=${canary}; other=1` },
  'a password in an URL': { store: `postgres://user:${canary}@localhost:5432/db` },
  'a token in a query': { path: `/api?access_token=${canary}&x=1` },
  'named members': { token: canary, accessToken: canary, 'client-secret': canary, PASSWORD: canary, api_key: canary },
  'a private key': { pem: `-----BEGIN EC PRIVATE KEY-----\n${canary}\n-----END EC PRIVATE KEY-----` },
  'half a private key': { pem: `-----BEGIN PRIVATE KEY-----\n${canary}` },
  'a JSON Web Token': { text: `eyJhbGciOiJSUzI1NiJ9.${canary}.${canary}` },
  'the end of what is inspected': { text: `${'x'.repeat(1985)} Bearer ${canary}` },
};

for (const [what, fields] of Object.entries(secrets)) {
  test(`no credential is written: ${what}`, (t) => {
    const line = JSON.stringify(safeLogFields(fields));
    t.false(leaks(line), line);
  });
}

test('what is no credential stays readable', (t) => {
  const cause = new Error('inner');
  const err = Object.assign(new Error('outer', { cause }), { code: 'ECONNRESET' });
  const safe = safeLogFields({
    key: '/core/pods/a',
    big: 5n,
    at: new Date(0),
    list: [1, null],
    none: undefined,
    err,
  }) as {
    err: Record<string, unknown> & { cause: Record<string, unknown> };
  };
  t.like(safe, { key: '/core/pods/a', big: '5', at: '1970-01-01T00:00:00.000Z', list: [1, null] });
  t.like(safe.err, { type: 'Error', message: 'outer', code: 'ECONNRESET' });
  t.regex(String(safe.err['stack']), /guarded-logger\.test/);
  t.is(safe.err.cause['message'], 'inner');
  t.is(safeLogFields({ text: 'a bearer token could not be reviewed' })['text'], 'a bearer token could not be reviewed');
});

test('a line has no control characters and is bounded, whatever the fields are', (t) => {
  t.is(safeLogFields({ text: '\u001b[31mred\u001b[0m\u009b2J\u0000' })['text'], 'red');
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  const long = 'x'.repeat(1_000_000);
  const wide = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, long]));
  for (const fields of [
    { circle },
    { long },
    wide,
    { list: Array.from({ length: 10_000 }, () => long) },
    { [long]: 1 },
  ]) {
    t.true(JSON.stringify(safeLogFields(fields)).length < 20_000);
  }
});

test('the same warning is written 50 times at once and once a second, and the next line counts those left out', (t) => {
  let now = 0;
  const lines: { message: string; fields: LogFields }[] = [];
  const sink = {
    enabled: () => true,
    write: (_: string, message: string, fields: LogFields) => void lines.push({ message, fields }),
  };
  const logger = guardedLogger(sink, () => now);
  const parts = [logger.child({ component: 'a' }), logger.child({ component: 'b' })] as const;
  for (let i = 0; i < 1000; i += 1) parts[i % 2]?.warn('it failed', { i });
  t.is(lines.length, 50);
  logger.error('another message');
  t.is(lines.at(-1)?.message, 'another message');
  for (let i = 0; i < 200; i += 1) logger.info('it works');
  t.is(lines.length, 251, 'information is not limited');
  now += 2000;
  for (let i = 0; i < 10; i += 1) logger.warn('it failed', { i });
  t.deepEqual(
    lines.slice(251).map(({ fields }) => ({ ...fields })),
    [{ i: 0, suppressed: 950 }, { i: 1 }],
  );
});
