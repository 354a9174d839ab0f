import test from 'ava';
import fc from 'fast-check';
import {
  formatLogLine,
  matchesContainer,
  normalizeImageReference,
  parseImageReference,
  parseLogLine,
} from '../src/index.ts';

test('log lines are parsed as they were written', (t) => {
  const text = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes.filter((byte) => byte !== 0x0a)));
  const property = fc.property(
    text,
    fc.boolean(),
    fc.constantFrom('stdout' as const, 'stderr' as const),
    (bytes, partial, stream) => {
      const time = '2026-01-02T03:04:05.678901234Z';
      const line = formatLogLine(time, stream, partial, bytes);
      const parsed = parseLogLine(line.subarray(0, -1));
      return (
        line.at(-1) === 0x0a &&
        parsed?.time === time &&
        parsed.partial === partial &&
        parsed.stream === stream &&
        parsed.text.equals(bytes)
      );
    },
  );
  t.notThrows(() => fc.assert(property));
});

test('lines that are not log entries are recognized', (t) => {
  for (const text of [
    '',
    ' ',
    'x',
    '2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00Z stdout',
    'now stdout F x',
    '2026-01-01T00:00:00Z stdin F x',
  ]) {
    t.is(parseLogLine(Buffer.from(text)), undefined, text);
  }
  t.is(parseLogLine(Buffer.from('2026-01-01T00:00:00Z stdout F'))?.text.length, 0);
  t.true(parseLogLine(Buffer.from('2026-01-01T00:00:00+01:00 stderr P:x more'))?.partial);
});

test('references have a name, a tag, a digest', (t) => {
  const digest = `sha256:${'a'.repeat(64)}`;
  const cases: [string, string][] = [
    ['app', 'app:latest'],
    ['app:1.2', 'app:1.2'],
    ['localhost:5000/team/app', 'localhost:5000/team/app:latest'],
    ['[::1]:5000/app:x', '[::1]:5000/app:x'],
    [`app@${digest}`, `app@${digest}`],
    [`app:1@${digest}`, `app@${digest}`],
  ];
  for (const [given, normal] of cases) t.is(normalizeImageReference(given), normal);
  t.deepEqual(parseImageReference('registry.test:5000/a/b:t'), { name: 'registry.test:5000/a/b', tag: 't' });
  for (const bad of ['', 'APP', 'a b', '/a', 'a/', 'a:', 'a@sha256:1', '../a', 'a:-x', `a:${'t'.repeat(129)}`]) {
    t.throws(() => parseImageReference(bad), { code: 'InvalidArgument' } as object, bad);
  }
});

test('malicious references are rejected in bounded time', (t) => {
  const begin = performance.now();
  for (const text of [
    `${'a-'.repeat(2000)}!`,
    `${'a.'.repeat(2000)}!`,
    `${'a'.repeat(4000)}!`,
    `${'a/'.repeat(2000)}!`,
    `${'a__'.repeat(1300)}!`,
  ]) {
    t.throws(() => parseImageReference(text));
  }
  t.true(performance.now() - begin < 2000);
});

test('label filters ignore inherited properties', (t) => {
  const container = {
    id: 'c',
    sandboxId: 's',
    metadata: { name: 'n', attempt: 0 },
    image: '',
    imageId: '',
    state: 'running' as const,
    createdAt: 0,
    labels: {},
    annotations: {},
  };
  t.true(matchesContainer(container));
  t.false(matchesContainer(container, { labels: { toString: 'x' } }));
  t.true(
    matchesContainer(
      { ...container, labels: { a: 'b' } },
      { labels: { a: 'b' }, state: 'running', sandboxId: 's', id: 'c' },
    ),
  );
});
