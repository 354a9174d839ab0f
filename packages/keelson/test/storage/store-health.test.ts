import { StorageError } from '@keelson/core';
import { FakeClock, type LogFields, silentLogger } from '@keelson/core/runtime';
import type { Store } from '@keelson/core/storage-adapter';
import { ConfigMap } from '@keelson/kinds';
import { MemoryStore } from '@keelson/storage-memory';
import test from 'ava';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import { routeLibraryOutput } from '../../src/observe/library-output.ts';
import { GuardedStore } from '../../src/storage/guarded-store.ts';

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields | undefined;
}

function recording() {
  const lines: Line[] = [];
  const line = (level: string) => (message: string, fields?: LogFields) => {
    lines.push({ level, message, fields });
  };
  const logger = {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    child: () => logger,
  };
  return { lines, logger, failures: () => lines.filter(({ message }) => message === 'the store failed') };
}

/** A store whose calls fail with an error while there is one. */
function failing(): { readonly store: Store; error: StorageError | undefined; writesOnly: boolean } {
  const inner = new MemoryStore();
  const state = {
    error: undefined as StorageError | undefined,
    writesOnly: false,
    store: new Proxy<Store>(inner, {
      get(target, name) {
        const value = Reflect.get(target, name, target) as unknown;
        if (typeof value !== 'function') return value;
        const fails = name === 'write' || (!state.writesOnly && (name === 'get' || name === 'currentRevision'));
        return (...call: unknown[]) =>
          fails && state.error !== undefined ? Promise.reject(state.error) : (value.apply(target, call) as unknown);
      },
    }),
  };
  return state;
}

const turns = async () => {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
};
const unavailable = (reason: string, cause?: unknown) => new StorageError('Unavailable', reason, { cause });

test('each cause of failures is reported once with the reason of the store, and after half a minute with the number of repetitions', async (t) => {
  const clock = new FakeClock();
  const { logger, failures } = recording();
  const state = failing();
  const guarded = new GuardedStore(state.store, logger, () => {}, clock);
  t.teardown(() => guarded.close());
  state.error = unavailable('request 17 was refused', new Error('authentication is enabled'));
  for (let i = 0; i < 50; i++) await t.throwsAsync(guarded.get('/a'));
  state.error = unavailable('request 18 was refused', new Error('authentication is enabled'));
  await t.throwsAsync(guarded.get('/a'));
  t.deepEqual(failures(), [
    {
      level: 'warn',
      message: 'the store failed',
      fields: {
        component: 'storage',
        code: 'Unavailable',
        reason: 'request 17 was refused: authentication is enabled',
      },
    },
  ]);
  state.error = unavailable('no space');
  await t.throwsAsync(guarded.write({ op: 'put', key: '/a', value: Buffer.from('x'), expect: 0 }));
  t.is(failures().length, 2, 'another cause');
  for (let i = 0; i < 3; i++) await t.throwsAsync(guarded.get('/a'));
  clock.advance(30_000);
  await t.throwsAsync(guarded.get('/a'));
  await turns();
  t.deepEqual(failures().at(2)?.fields, { component: 'storage', code: 'Unavailable', reason: 'no space', repeated: 3 });
});

test('answers such as a conflict, and calls that their caller ended, are no failures', async (t) => {
  const { logger, failures } = recording();
  const state = failing();
  const guarded = new GuardedStore(state.store, logger, () => {}, new FakeClock());
  for (const code of ['Compacted', 'FutureRevision', 'TooLarge', 'Conflict'] as const) {
    state.error = new StorageError(code, 'as it should be');
    await t.throwsAsync(guarded.get('/a'));
  }
  state.error = unavailable('ended');
  await t.throwsAsync(guarded.get('/a', { signal: AbortSignal.abort() }));
  t.deepEqual(failures(), []);
  t.false(guarded.health.failing);
});

test('the server is not ready after five seconds in which every read and write failed, and is again when the store answers', async (t) => {
  const clock = new FakeClock();
  const state = failing();
  const plane = await createControlPlane({ storage: state.store, clock, logger: silentLogger, controllers: false });
  t.teardown(() => plane.close());
  const configMaps = plane.client(ConfigMap).namespace('default');
  const create = (name: string) => configMaps.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      clock.advance(1_000);
      await turns();
    }
  };
  state.error = unavailable('the disk is full');
  const failure = await t.throwsAsync(create('a'));
  t.is(
    failure?.message,
    'The create operation against configmaps could not be completed at this time, please try again. Cause: the disk is full',
  );
  await pass(4);
  t.true(plane.ready());
  await pass(2);
  t.false(plane.ready());
  state.error = undefined;
  await pass(2);
  t.true(plane.ready(), 'noticed without a call');
  state.writesOnly = true;
  state.error = unavailable('the disk is full');
  await t.throwsAsync(create('b'));
  await pass(10);
  t.true(plane.ready(), 'reads are answered');
});

test('what a library prints is one line of the log, and repetitions are left out', (t) => {
  const { lines, logger } = recording();
  const restore = routeLibraryOutput(logger, new FakeClock());
  for (let i = 0; i < 5; i++) console.error('commit %d failed', i);
  console.log({ a: 1 });
  process.emit('warning', new Error('too many listeners'));
  restore();
  t.deepEqual(
    lines.map(({ level, message, fields }) => [level, message, fields?.['output']]),
    [
      ['warn', 'a library printed', 'commit 0 failed'],
      ['info', 'a library printed', '{ a: 1 }'],
      ['warn', 'a library printed', 'Error: too many listeners'],
    ],
  );
});
