import { FakeClock, type LogFields, silentLogger } from '@keelson/core/runtime';
import type { Store } from '@keelson/core/storage-adapter';
import { MemoryStore } from '@keelson/storage-memory';
import test from 'ava';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';

/** A store of which one method never answers. */
function hanging(method: 'ready' | 'identity' | 'get' | 'currentRevision' | 'write'): Store {
  const store = new MemoryStore();
  const answer = method === 'ready' ? store.ready.bind(store) : undefined;
  return new Proxy(store, {
    get(target, name) {
      if (name === method) return () => new Promise(() => {});
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === 'function' ? (value.bind(target) as unknown) : (value ?? answer);
    },
  });
}

for (const method of ['ready', 'identity', 'get', 'currentRevision', 'write'] as const) {
  test(`the start can be ended while the store does not answer ${method}`, async (t) => {
    const ending = new AbortController();
    const starting = createControlPlane({ storage: hanging(method), signal: ending.signal });
    setTimeout(() => ending.abort(new Error('ended')), 50);
    await t.throwsAsync(starting, { message: 'ended' });
  });
}

test('a start that waits for the store reports what it waits for', async (t) => {
  const clock = new FakeClock();
  const ending = new AbortController();
  const lines: unknown[] = [];
  const logger = {
    ...silentLogger,
    child: () => logger,
    warn: (message: string, fields?: LogFields) => lines.push([message, fields?.['component'], fields?.['reason']]),
  };
  const starting = createControlPlane({ storage: hanging('ready'), signal: ending.signal, clock, logger });
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  clock.advance(3_000);
  t.deepEqual(lines, [['the start is delayed', 'storages', 'the store default is being opened']]);
  ending.abort(new Error('ended'));
  await t.throwsAsync(starting, { message: 'ended' });
});
