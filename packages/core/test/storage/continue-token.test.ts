import test from 'ava';
import { isStorageError, StorageError } from '../../src/index.ts';
import { createContinueTokens } from '../../src/internal.ts';
import { FakeClock } from '../../src/runtime.ts';

const secret = Buffer.alloc(32, 7);

function tokens(clock = new FakeClock(), fingerprint = 'config 1', key: Uint8Array = secret) {
  return createContinueTokens({ secret: key, fingerprint, clock });
}

function failure(action: () => unknown): StorageError {
  try {
    action();
  } catch (error) {
    if (error instanceof StorageError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

test('a continue token contains the position that it was created from', (t) => {
  const codec = tokens();
  const after = '/core/pods/a/\u{1f600}"\\é';
  for (const position of [
    { revision: 1, after },
    { revision: Number.MAX_SAFE_INTEGER, after },
    { revision: 'latest', after: `/core/pods/${'x'.repeat(1000)}` },
  ] as const) {
    const text = codec.encode(position, 'binding');
    t.regex(text, /^[A-Za-z0-9_-]+$/);
    t.deepEqual(codec.decode(text, 'binding'), position);
  }
});

test('a token of another list is distinguished from a token that this server did not issue', (t) => {
  const codec = tokens();
  const text = codec.encode({ revision: 5, after: '/a' }, 'pods of a');
  const other = failure(() => codec.decode(text, 'pods of b'));
  t.is(other.code, 'InvalidToken');
  t.true(other.mismatch);
  const garbage = failure(() => codec.decode('garbage', 'pods of a'));
  t.is(garbage.code, 'InvalidToken');
  t.false(garbage.mismatch);
});

test('every changed character makes a token invalid or does not change its meaning', (t) => {
  const codec = tokens();
  const text = codec.encode({ revision: 5, after: '/core/pods/a/x' }, 'b');
  for (let i = 0; i < text.length; i++) {
    const changed = `${text.slice(0, i)}${text[i] === 'A' ? 'B' : 'A'}${text.slice(i + 1)}`;
    try {
      t.deepEqual(codec.decode(changed, 'b'), { revision: 5, after: '/core/pods/a/x' });
    } catch (error) {
      t.true(isStorageError(error, 'InvalidToken'), `position ${i}`);
    }
  }
});

test('hostile texts are invalid tokens, whatever they are', (t) => {
  const codec = tokens();
  const json = Buffer.from('{"r":1,"a":"/","t":1}').toString('base64url');
  for (const text of [
    '',
    ' ',
    'a',
    '....',
    json,
    'A'.repeat(1_000_000),
    '\0',
    'ü',
    '%41',
    codec.encode({ revision: 1, after: '/' }, 'b').slice(0, -4),
  ]) {
    t.is(failure(() => codec.decode(text, 'b')).code, 'InvalidToken');
  }
});

test('tokens of another secret or configuration are invalid, those of the same survive a restart', (t) => {
  const text = tokens().encode({ revision: 5, after: '/a' }, 'b');
  t.deepEqual(tokens().decode(text, 'b'), { revision: 5, after: '/a' });
  t.false(failure(() => tokens(new FakeClock(), 'config 2').decode(text, 'b')).mismatch);
  t.is(failure(() => tokens(new FakeClock(), 'config 1', Buffer.alloc(32, 8)).decode(text, 'b')).code, 'InvalidToken');
});

test('a token is valid for five minutes, and the error of an expired one contains the key to continue from', (t) => {
  const clock = new FakeClock();
  const codec = tokens(clock);
  const text = codec.encode({ revision: 5, after: '/core/pods/a/x' }, 'b');
  clock.advance(300_000);
  t.deepEqual(codec.decode(text, 'b'), { revision: 5, after: '/core/pods/a/x' });
  clock.advance(1);
  const error = failure(() => codec.decode(text, 'b'));
  t.is(error.code, 'ExpiredToken');
  t.is(error.key, '/core/pods/a/x');
});

test('an expired token of another list is a mismatch first', (t) => {
  const clock = new FakeClock();
  const codec = tokens(clock);
  const text = codec.encode({ revision: 5, after: '/a' }, 'b');
  clock.advance(400_000);
  t.true(failure(() => codec.decode(text, 'c')).mismatch);
});

test('a short secret is refused', (t) => {
  t.throws(() => createContinueTokens({ secret: Buffer.alloc(8), fingerprint: '', clock: new FakeClock() }), {
    instanceOf: TypeError,
  });
});
