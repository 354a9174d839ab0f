import { StorageError, StorageErrorCode } from '@keelson/core';
import { FakeClock } from '@keelson/core/runtime';
import { Event, Lease } from '@keelson/kinds';
import { MemoryStore } from '@keelson/storage-memory';
import test from 'ava';
import { type ControlPlane, createControlPlane } from '../../src/control-plane/create-control-plane.ts';

const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';

async function rows(plane: ControlPlane): Promise<unknown[]> {
  const { url, close } = await plane.listen();
  const answer = await fetch(`${url}/api/v1/componentstatuses`, { headers: { accept: table } });
  const body = (await answer.json()) as { rows: { cells: unknown[] }[] };
  await close();
  return body.rows.map(({ cells }) => cells);
}

const missing = (lease: string) => `no process holds the lease kube-system/${lease}`;

test('componentstatuses are computed, deprecated and read only', async (t) => {
  await using plane = await createControlPlane({ controllers: ['*'] });
  const { url } = await plane.listen();
  const path = `${url}/api/v1/componentstatuses`;
  const one = await fetch(`${path}/etcd-0`);
  t.is(one.headers.get('warning'), '299 - "v1 ComponentStatus is deprecated in v1.19+"');
  t.deepEqual(await one.json(), {
    kind: 'ComponentStatus',
    apiVersion: 'v1',
    metadata: { name: 'etcd-0' },
    conditions: [{ type: 'Healthy', status: 'True', message: 'ok' }],
  });
  t.deepEqual(await rows(plane), [
    ['controller-manager', 'Healthy', 'ok', ''],
    ['etcd-0', 'Healthy', 'ok', ''],
    ['scheduler', 'Healthy', 'ok', ''],
  ]);
  t.is((await fetch(`${path}/etcd-1`)).status, 404);
  for (const method of ['POST', 'DELETE']) t.is((await fetch(path, { method })).status, 405, method);
  t.is((await fetch(`${path}?watch=1`)).status, 405);
  t.is((await fetch(`${path}/etcd-0`, { method: 'DELETE' })).status, 405);
});

test('components that other processes run are healthy as long as their lease is held', async (t) => {
  const clock = new FakeClock();
  await using plane = await createControlPlane({ clock });
  const stopped = (error: string) => ['Unhealthy', '', error];
  t.deepEqual(await rows(plane), [
    ['controller-manager', ...stopped(missing('keelson-workload-controllers'))],
    ['etcd-0', 'Healthy', 'ok', ''],
    ['scheduler', ...stopped(missing('keelson-scheduler'))],
  ]);
  const renewTime = new Date(clock.now()).toISOString().replace('Z', '000Z');
  const leases = plane.client(Lease).namespace('kube-system');
  const held = { holderIdentity: 'other', leaseDurationSeconds: 9, renewTime };
  await leases.create({ metadata: { name: 'keelson-scheduler' }, spec: held });
  await leases.create({
    metadata: { name: 'keelson-workload-controllers' },
    spec: { ...held, holderIdentity: '' },
  });
  const states = async () => (await rows(plane)).map((cells) => (cells as string[])[1]);
  t.deepEqual(await states(), ['Unhealthy', 'Healthy', 'Healthy']);
  clock.advance(9_000);
  t.deepEqual(await states(), ['Unhealthy', 'Healthy', 'Unhealthy']);
});

test('each store has a row, which is unhealthy while all calls of the store fail', async (t) => {
  const clock = new FakeClock();
  let broken = false;
  const events = new Proxy(new MemoryStore({ clock }), {
    get(target, name) {
      const value = Reflect.get(target, name, target) as unknown;
      if (typeof value !== 'function') return value;
      const fails = name === 'write' || name === 'get' || name === 'currentRevision';
      return (...rest: unknown[]) => {
        if (broken && fails) return Promise.reject(new StorageError(StorageErrorCode.Unavailable, 'broken'));
        return Reflect.apply(value, target, rest) as unknown;
      };
    },
  });
  await using plane = await createControlPlane({
    clock,
    storage: {
      default: new MemoryStore({ clock }),
      routes: [{ name: 'events', group: '', resources: ['events'], storage: events }],
    },
  });
  const states = async () => (await rows(plane)).map((cells) => (cells as string[]).slice(0, 2).join(' '));
  t.deepEqual((await states()).slice(1, 3), ['etcd-0 Healthy', 'etcd-1 Healthy']);
  broken = true;
  const event = { metadata: { name: 'e' }, involvedObject: { namespace: 'default' } };
  await t.throwsAsync(plane.client(Event).namespace('default').create(event));
  clock.advance(5_000);
  t.deepEqual((await states()).slice(1, 3), ['etcd-0 Healthy', 'etcd-1 Unhealthy']);
  t.deepEqual((await rows(plane))[2], ['etcd-1', 'Unhealthy', '', 'the store "events" does not answer']);
});
