import { StorageError, StorageErrorCode } from '@keelson/core';
import { FakeClock, type LogFields, silentLogger } from '@keelson/core/runtime';
import type { Store } from '@keelson/core/storage-adapter';
import { Namespace } from '@keelson/kinds';
import { MemoryStore } from '@keelson/storage-memory';
import { until } from '@keelson/test-support';
import test from 'ava';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import type { ControlPlaneOptions } from '../../src/control-plane/plane-options.ts';

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

test('a store that cannot be reached is opened when it can, and the start reports why it waits', async (t) => {
  const clock = new FakeClock();
  const reasons: unknown[] = [];
  const logger = {
    ...silentLogger,
    child: () => logger,
    warn: (_: string, fields?: LogFields) => reasons.push(fields?.['reason']),
  };
  let attempts = 0;
  const store = new MemoryStore();
  const late = new Proxy<Store>(store, {
    get(target, name) {
      if (name !== 'ready')
        return typeof Reflect.get(target, name, target) === 'function'
          ? Reflect.get(target, name, target).bind(target)
          : Reflect.get(target, name, target);
      return async () => {
        attempts += 1;
        if (attempts < 6) throw new StorageError(StorageErrorCode.Unavailable, 'refused');
      };
    },
  });
  let started = false;
  const starting = createControlPlane({ storage: late, logger, clock, controllers: false }).finally(() => {
    started = true;
  });
  for (let second = 0; !started && second < 60; second += 1) {
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    clock.advance(1_000);
  }
  const plane = await starting;
  t.is(attempts, 6);
  t.true(reasons.includes('the store default is being opened; refused'), String(reasons));
  const closing = plane.close();
  clock.advance(60_000);
  await closing;
});

test('a program without a logger gets a warning of the process, without the password of the URL', async (t) => {
  const clock = new FakeClock();
  const ending = new AbortController();
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
  const storage = 'etcd://joe:secret@127.0.0.1:1';
  const starting = createControlPlane({ storage, signal: ending.signal, clock });
  starting.catch(() => {});
  const advancing = setInterval(() => clock.advance(1_000), 10);
  const { message } = await warned;
  clearInterval(advancing);
  ending.abort(new Error('ended'));
  await t.throwsAsync(starting, { message: 'ended' });
  t.regex(message, /^storages: the start is delayed: the store default \(storage: etcd:\/\/joe:\*\*\*@127.0.0.1:1\)/);
});

test('errors about options name those of the API, not the flags of the command', async (t) => {
  const message = async (options: ControlPlaneOptions) =>
    (await t.throwsAsync(createControlPlane(options), { name: 'UsageError' }))?.message ?? '';
  t.is(
    await message({ authorization: { modes: ['Policy'] } }),
    'authorization.modes Policy requires authorization.policyFile',
  );
  t.regex(await message({ authentication: { tokenFile: '/no' } }), /^authentication.tokenFile \/no cannot be read/);
  t.regex(await message({ encryptionConfigFile: '/no' }), /^encryptionConfigFile \/no cannot be read/);
  t.regex(await message({ services: { serviceClusterIpRange: 'x' } }), /^services.serviceClusterIpRange: /);
  t.regex(await message({ storage: 'mongo://a:b@c' }), /^storage "mongo:\/\/a:\*\*\*@c" must begin with one of/);
  for (const options of [{ controllers: ['no'] }, { audit: { policyFile: '/no' } }])
    t.notRegex(await message(options as ControlPlaneOptions), /--/);
});

test('a namespace of the system that is deleted is created again within a minute', async (t) => {
  const clock = new FakeClock();
  const plane = await createControlPlane({ storage: 'memory:', clock, controllers: ['namespace-controller'] });
  t.teardown(() => plane.close());
  const namespaces = plane.client(Namespace);
  const { metadata: first } = await namespaces.get('kube-node-lease');
  const uid = async () =>
    (await namespaces.list()).items.find((one) => one.metadata?.name === first?.name)?.metadata?.uid;
  await namespaces.delete('kube-node-lease');
  await until(async () => (await uid()) === undefined);
  clock.advance(60_000);
  await until(async () => (await uid()) !== undefined);
  t.not(await uid(), first?.uid);
});
