import { Random } from '@keelson/conformance';
import type { StorageErrorCode } from '@keelson/core';
import { WireReader, WireWriter } from '@keelson/protobuf-wire';
import test from 'ava';
import { NotSentError, translateEtcdError, verdictOf } from '../src/net/etcd-errors.ts';
import { CallError } from '../src/net/grpc-messages.ts';
import { watchTraits } from '../src/net/server-version.ts';
import { entryOf, expiryStamp, KeySpace } from '../src/wire/key-space.ts';
import { decodeRange } from '../src/wire/responses.ts';
import { decodeWatchFrame } from '../src/wire/watch-response.ts';

const seed = Number(process.env['KEELSON_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

test('numbers of any size, texts and nested messages are decoded unchanged, and unknown fields are skipped', (t) => {
  const random = new Random(seed);
  const numbers = [
    1,
    127,
    128,
    16_383,
    16_384,
    2 ** 31,
    2 ** 32,
    2 ** 53 - 1,
    ...Array.from({ length: 200 }, () => random.below(2 ** 31) * 2 ** 20),
  ];
  for (const number of numbers) {
    const text = Buffer.alloc(number % 300, 'é');
    const message = new WireWriter()
      .integer(1, number)
      .integer(15, 2n ** 64n - 1n)
      .bytes(16, Buffer.from('skipped'))
      .message(2, new WireWriter().bytes(2000, text.subarray(0, 3), text.subarray(3)).flag(3, true))
      .finish();
    const reader = new WireReader(message);
    t.is(reader.next(), 1);
    t.is(reader.integer(), number);
    t.is(reader.next(), 15);
    t.is(reader.bigint(), 2n ** 64n - 1n);
    t.is(reader.next(), 16);
    reader.skip();
    t.is(reader.next(), 2);
    const inner = reader.within((nested) => {
      nested.next();
      return Buffer.from(nested.bytes());
    });
    t.true(inner.equals(text), `KEELSON_SEED=${seed}`);
    t.is(reader.next(), 0);
  }
});

function keyValue(key: string, value: Uint8Array, revision: number, lease = 0n): WireWriter {
  return new WireWriter()
    .bytes(1, Buffer.from(key))
    .integer(2, revision - 1)
    .integer(3, revision)
    .integer(4, 7)
    .bytes(5, value)
    .integer(6, lease);
}

test('a truncated response is rejected or lacks the truncated part, and nothing is read beyond it', (t) => {
  const header = new WireWriter().integer(1, 2n ** 63n + 5n).integer(3, 99);
  const whole = new WireWriter()
    .message(1, header)
    .message(2, keyValue('/p/a', Buffer.from('value'), 50))
    .message(2, keyValue('/p/b', Buffer.alloc(0), 51, 2n ** 62n))
    .flag(3, true)
    .integer(4, 3)
    .finish();
  const { kvs, more, count, header: read } = decodeRange(whole);
  t.deepEqual(read, { clusterId: (2n ** 63n + 5n).toString(), revision: 99 });
  t.deepEqual([more, count, kvs.length], [true, 3, 2]);
  t.like(kvs[1], { createRevision: 50, modRevision: 51, version: 7, leased: true });
  for (let length = 0; length < whole.length; length++) {
    try {
      t.true(decodeRange(Buffer.from(whole.subarray(0, length))).kvs.length <= 2);
    } catch (error) {
      t.true(error instanceof RangeError, String(error));
    }
  }
  const event = new WireWriter()
    .integer(1, 1)
    .message(2, keyValue('/p/a', Buffer.alloc(0), 9))
    .message(3, keyValue('/p/a', Buffer.from('x'), 8));
  const frame = decodeWatchFrame(
    new WireWriter().message(1, header).integer(2, -1).flag(7, true).message(11, event).finish(),
  );
  t.like(frame, { toStream: true, fragment: true, created: false });
  t.like(frame.events[0], { deleted: true });
  t.is(frame.events[0]?.prev?.value.toString(), 'x');
});

test('a small value does not retain its response buffer, a value that fills it is shared', (t) => {
  const answer = Buffer.alloc(10_000, 1);
  const kv = { key: Buffer.from('/p/a'), createRevision: 1, modRevision: 2, version: 1, leased: false };
  const small = entryOf('a', { ...kv, value: answer.subarray(10, 500) }, answer.length);
  t.not(small.value.buffer, answer.buffer);
  const large = entryOf('a', { ...kv, value: answer.subarray(10, 9000) }, answer.length);
  t.is(large.value.buffer, answer.buffer);
  const leased = entryOf(
    'a',
    { ...kv, leased: true, value: Buffer.concat([expiryStamp(123_456_789_012.5), Buffer.from('v')]) },
    9,
  );
  t.is(leased.expiresAt, 123_456_789_012.5);
  t.is(Buffer.from(leased.value).toString(), 'v');
});

test('keys are stored under the prefix, and records of the store precede all of them', (t) => {
  const space = new KeySpace('/é/');
  for (const key of ['/a', '\u0001', '/\u{10ffff}']) {
    const stored = space.encode(key);
    t.is(space.decode(stored), key);
    t.false(space.isHidden(stored));
    for (const own of [space.identity, space.cookie, space.missing]) {
      t.true(space.isHidden(own));
      t.true(Buffer.compare(own, stored) < 0);
    }
    t.true(Buffer.compare(space.first, stored) <= 0 && Buffer.compare(stored, space.end) < 0);
  }
});

const failures: readonly (readonly [number, string, StorageErrorCode, StorageErrorCode])[] = [
  [14, 'Stream refused by server', 'Unavailable', 'Unavailable'],
  [14, 'read ECONNRESET', 'OutcomeUnknown', 'Unavailable'],
  [14, 'etcdserver: request timed out', 'OutcomeUnknown', 'Unavailable'],
  [14, 'etcdserver: leader changed', 'OutcomeUnknown', 'Unavailable'],
  [14, 'etcdserver: no leader', 'Unavailable', 'Unavailable'],
  [8, 'etcdserver: too many requests', 'Unavailable', 'Unavailable'],
  [8, 'etcdserver: mvcc: database space exceeded', 'Unavailable', 'Unavailable'],
  [4, 'Deadline exceeded', 'OutcomeUnknown', 'Timeout'],
  [1, 'Cancelled on client', 'OutcomeUnknown', 'Timeout'],
  [13, 'Received RST_STREAM with code 2', 'OutcomeUnknown', 'Unavailable'],
  [3, 'etcdserver: request is too large', 'TooLarge', 'TooLarge'],
  [11, 'etcdserver: mvcc: required revision has been compacted', 'Compacted', 'Compacted'],
  [11, 'etcdserver: mvcc: required revision is a future revision', 'FutureRevision', 'FutureRevision'],
  [7, 'etcdserver: permission denied', 'Unavailable', 'Unavailable'],
  [16, 'etcdserver: invalid auth token', 'Unavailable', 'Unavailable'],
];

test('every error has its code, and that of a write that may have been executed is OutcomeUnknown', (t) => {
  for (const [code, details, write, read] of failures) {
    const error = new CallError(code, details);
    t.is(translateEtcdError(error, 'write', { key: '/k' }).code, write, details);
    t.is(translateEtcdError(error, 'read').code, read, details);
    t.is(translateEtcdError(error, 'write', { key: '/k' }).key, '/k');
    t.is(translateEtcdError(error, 'read').cause, error);
  }
  t.is(translateEtcdError(new NotSentError('x'), 'write').code, 'Unavailable');
  t.is(translateEtcdError(new TypeError('x'), 'write').code, 'OutcomeUnknown');
  t.is(verdictOf(undefined), 'noAnswer');
});

test('progress requests are supported by certain versions of etcd', (t) => {
  for (const [version, progress] of [
    ['3.4.23', false],
    ['3.4.30', false],
    ['3.4.31', true],
    ['3.5.12', false],
    ['3.5.13', true],
    ['3.6.0', true],
    ['3.6.0-rc.1', true],
    ['3.10.2', true],
    ['4.0.0', true],
    ['3.3.99', false],
    ['', false],
    ['not a version', false],
  ] as const) {
    t.is(watchTraits(version).progress, progress, version);
  }
});
