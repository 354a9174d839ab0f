import { isStorageError, StorageError, StorageErrorCode } from '@keelson/core';
import { systemClock } from '@keelson/core/runtime';
import { OrderedRange, type WriteOp } from '@keelson/core/storage-adapter';
import test from 'ava';
import { postgresAdapter } from '../src/adapter.ts';
import { after, boundsOf } from '../src/bounds.ts';
import { readMigrations } from '../src/migrations.ts';
import { RecentChanges } from '../src/recent-changes.ts';
import { revisionOf } from '../src/rows.ts';
import { resolveSettings } from '../src/settings.ts';
import { SqlState } from '../src/sql-state.ts';
import { isConnectionLost, translateError } from '../src/translate-error.ts';
import { WriteQueue } from '../src/write-queue.ts';

function put(key: string, size = 1): WriteOp {
  return { op: 'put', key, value: Buffer.alloc(size), expect: 0 };
}

function push(queue: WriteQueue, op: WriteOp, options = {}) {
  const write = queue.push(op, options, systemClock);
  write.answer.catch(() => {});
  return write;
}

const keysOf = (batch: readonly { readonly op: WriteOp }[]) => batch.map(({ op }) => op.key);

test('a batch has at most 256 writes, a megabyte, and one write per key, in order of arrival', (t) => {
  const queue = new WriteQueue();
  for (let i = 0; i < 300; i++) push(queue, put(`/${i}`));
  t.is(queue.take().length, 256);
  t.deepEqual(
    keysOf(queue.take()),
    Array.from({ length: 44 }, (_, i) => `/${256 + i}`),
  );
  for (const key of ['/a', '/b', '/a', '/c', '/a', '/b']) push(queue, put(key));
  t.deepEqual(keysOf(queue.take()), ['/a', '/b', '/c']);
  t.deepEqual(keysOf(queue.take()), ['/a', '/b']);
  t.deepEqual(keysOf(queue.take()), ['/a']);
  for (const key of ['/a', '/b', '/c']) push(queue, put(key, 600_000));
  push(queue, put('/huge', 3_000_000));
  for (const key of ['/a', '/b', '/c', '/huge']) t.deepEqual(keysOf(queue.take()), [key]);
  t.true(queue.empty);
});

test('returned writes are first in the queue, keep their order, and are sent alone on request', (t) => {
  const queue = new WriteQueue();
  for (const key of ['/a', '/b']) push(queue, put(key));
  const batch = queue.take();
  for (const key of ['/c', '/a']) push(queue, put(key));
  for (const write of batch) write.alone = true;
  queue.giveBack(batch);
  t.deepEqual(keysOf(queue.take()), ['/a']);
  t.deepEqual(keysOf(queue.take()), ['/b']);
  t.deepEqual(keysOf(queue.take()), ['/c', '/a']);
});

test('an aborted write is not sent; one that has been sent is OutcomeUnknown', async (t) => {
  const queue = new WriteQueue();
  const controller = new AbortController();
  const { signal } = controller;
  const sent = push(queue, put('/sent'), { signal });
  queue.take();
  const waiting = push(queue, put('/waiting'), { signal });
  const other = push(queue, put('/other'));
  controller.abort();
  t.true(isStorageError(await t.throwsAsync(sent.answer), 'OutcomeUnknown'));
  t.true(isStorageError(await t.throwsAsync(waiting.answer), 'Timeout'));
  t.deepEqual(queue.take(), [other]);
  const late = push(queue, put('/late'), { timeoutMs: 1 });
  t.true(isStorageError(await t.throwsAsync(late.answer), 'Timeout'));
  queue.giveBack([sent]);
  t.deepEqual(queue.take(), []);
});

test('writes are rejected when the queue is full', (t) => {
  const queue = new WriteQueue();
  for (let i = 0; i < 50_000; i++) push(queue, put('/a', 0));
  t.true(
    isStorageError(
      t.throws(() => queue.push(put('/b'), {}, systemClock)),
      'Unavailable',
    ),
  );
  queue.fail(new StorageError(StorageErrorCode.Closed, 'closed'));
  t.true(queue.empty);
});

test('range bounds that contain U+0000 are expressed without it', (t) => {
  t.deepEqual(boundsOf({ start: '/a', end: '/b' }), { start: '/a', end: '/b' });
  t.deepEqual(boundsOf({ start: '/a', startExclusive: true, end: '/b' }), { start: '/a\u0001', end: '/b' });
  t.deepEqual(boundsOf({ start: '/a\0', end: '/b\0zz' }), { start: '/a\u0001', end: '/b\u0001' });
  t.deepEqual(boundsOf({ start: '/a\0', startExclusive: true, end: '/b' }), { start: '/a\u0001', end: '/b' });
  t.is(after('/a'), '/a\u0001');
  t.true(
    isStorageError(
      t.throws(() => boundsOf({ start: '\ud800', end: '/' })),
      'InvalidKey',
    ),
  );
});

test('recent changes report the revision that they reach back to, with and without previous values', (t) => {
  const recent = new RecentChanges();
  const range = new OrderedRange({ start: '/', end: '0' });
  const change = (revision: number, full: boolean) => {
    const plain = { type: 'delete', revision, key: `/${revision}`, entry: undefined } as const;
    return { plain, full: full ? plain : undefined };
  };
  recent.restart(10);
  recent.append([change(11, true), change(12, false), change(13, true)], 15);
  t.true(recent.reachesBack(10, false));
  t.false(recent.reachesBack(11, true));
  t.true(recent.reachesBack(12, true));
  t.deepEqual(
    recent.read(11, range, false).changes.map(({ revision }) => revision),
    [12, 13],
  );
  t.is(recent.read(13, range, false).frontier, 15);
  recent.append(
    Array.from({ length: 10_000 }, (_, i) => change(100 + i, true)),
    10_099,
  );
  t.false(recent.reachesBack(6002, false));
  t.true(recent.reachesBack(6003, false));
  t.is(recent.read(6003, range, true).changes[0]?.revision, 6004);
});

test('errors of the server and of the network are distinguished', (t) => {
  const fromServer = (code: string) => Object.assign(new Error('text'), { code, severity: 'ERROR' });
  for (const code of ['57P01', '57P02', '08006']) t.true(isConnectionLost(fromServer(code)), code);
  for (const code of ['40001', '23514', '53100', 'KS001']) t.false(isConnectionLost(fromServer(code)), code);
  t.true(isConnectionLost(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })));
  t.true(isConnectionLost(new Error('Connection terminated unexpectedly')));
  t.false(isConnectionLost(new StorageError(StorageErrorCode.Closed, 'closed')));
  t.is(translateError(fromServer('54000'), 'x').code, 'TooLarge');
  t.is(translateError(fromServer('XX001'), 'x').code, 'Corrupt');
  t.regex(
    translateError(fromServer(SqlState.undefinedTable), 'a read').message,
    /^a read: the tables of the store are missing/,
  );
  t.regex(translateError(new AggregateError([new Error('ECONNREFUSED ::1')], ''), 'a read').message, /ECONNREFUSED/);
  t.true(
    isStorageError(
      t.throws(() => revisionOf('9007199254740993')),
      'Corrupt',
    ),
  );
});

test('a URL is split into options of the driver and options of the store', (t) => {
  const { parseUrl } = postgresAdapter;
  t.deepEqual(
    parseUrl('//u:p%40w@h:1/db?sslmode=require&schema=plane&notify=txn&minAgeMs=1000&readers=3&allowAsyncCommit=true'),
    {
      url: 'postgres://u:p%40w@h:1/db?sslmode=require',
      schema: 'plane',
      notify: 'txn',
      history: { minAgeMs: 1000 },
      readers: 3,
      allowAsyncCommit: true,
    },
  );
  t.deepEqual(parseUrl('//h/db?listenUrl=postgres%3A%2F%2Fdirect%2Fdb'), {
    url: 'postgres://h/db',
    listenUrl: 'postgres://direct/db',
  });
  t.deepEqual(parseUrl(''), {});
  t.deepEqual(parseUrl('///db?host=/run/postgresql'), { url: 'postgres:///db?host=%2Frun%2Fpostgresql' });
  for (const url of [
    '/db',
    '//h/db?notify=maybe',
    '//h/db?shcema=x',
    '//h/db?readers=many',
    '//h/db?preparedStatements=1',
  ]) {
    t.throws(() => parseUrl(url), { message: /postgres|notify|shcema|readers|preparedStatements/ });
  }
});

test('invalid options are rejected with a message', (t) => {
  for (const options of [
    { schema: 'a"b' },
    { schema: 'pg_x' },
    { schema: '' },
    { schema: "a'b" },
    { readers: 0 },
    { partitionRevisions: 0.5 },
  ]) {
    t.throws(() => resolveSettings(options), { message: /schema|readers|partitionRevisions/ });
  }
});

test('migrations are numbered without gaps', async (t) => {
  const migrations = await readMigrations();
  t.deepEqual(
    migrations.map(({ version }) => version),
    migrations.map((_, i) => i + 1),
  );
});
