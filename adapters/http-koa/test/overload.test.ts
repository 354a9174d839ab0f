import type { UserInfo } from '@keelson/core';
import { eventLoopTurns } from '@keelson/core/runtime';
import { until } from '@keelson/test-support';
import test from 'ava';
import { configMap, FakeRegistry, stored } from './support/fake-registry.ts';
import { admin, call, serve } from './support/serve.ts';

const one = '/api/v1/namespaces/default/configmaps/a';
const lease = '/apis/coordination.k8s.io/v1/namespaces/default/leases/a';
const users: Readonly<Record<string, UserInfo>> = {
  admin,
  jane: { name: 'jane', groups: [] },
  joe: { name: 'joe', groups: [] },
};

/** Keeps the process behind with the work of a caller until the function returned is called. */
function fallBehind(caller: string): () => void {
  let behind = true;
  const work = () => {
    const until = performance.now() + 2;
    while (performance.now() < until);
    if (behind) eventLoopTurns.add(work, { caller });
  };
  for (let i = 0; i < 100; i++) work();
  return () => {
    behind = false;
  };
}

const behindWith = (caller: string) => () => eventLoopTurns.delayMs(caller) > 60;

test.serial(
  'delayed requests of a caller are rejected, except leases and health checks; other callers are served',
  async (t) => {
    const registry = new FakeRegistry();
    registry.service(configMap).objects.set('a', stored(configMap, 'a', 5));
    const { port } = await serve(t, {
      registry,
      limits: { overloadDelayMs: 50, overloadDelayMastersMs: 60_000 },
      authenticate: (request) => users[request.headers['x-user'] as string],
      authorize: () => true,
    });
    const get = (path: string, user: string) => call(port, 'GET', path, { headers: { 'x-user': user } });
    t.is((await get(one, 'jane')).status, 200);
    const recover = [fallBehind('user jane'), fallBehind('user admin')];
    t.teardown(() => recover.forEach((stop) => void stop()));
    await until(behindWith('user jane'), 'the process is behind with the requests of jane');
    const refused = await get(one, 'jane');
    t.is(refused.status, 429);
    t.is(refused.headers['retry-after'], '1');
    t.is(refused.text, 'Too many requests, please try again later.\n');
    t.is((await get(one, 'joe')).status, 200, 'another user');
    t.is((await get(lease, 'jane')).status, 404, 'served, although this server has no leases');
    t.is((await get('/readyz', 'jane')).status, 200);
    await until(behindWith('user admin'), 'the process is behind with the requests of a master');
    const master = get(one, 'admin');
    for (const stop of recover) stop();
    t.is((await master).status, 200, 'the limit of masters is higher');
    await until(() => eventLoopTurns.delayMs('user jane') === 0, 'the process has caught up');
    t.is((await get(one, 'jane')).status, 200);
  },
);

test.serial('system:masters are rejected as well when the process is far behind with their requests', async (t) => {
  const { port } = await serve(t, { limits: { overloadDelayMs: 20, overloadDelayMastersMs: 50 } });
  const recover = fallBehind('user admin');
  t.teardown(recover);
  await until(behindWith('user admin'), 'the process is behind');
  t.is((await call(port, 'GET', one)).status, 429);
  t.is((await call(port, 'GET', '/livez')).status, 200);
  recover();
});

test.serial('requests whose credentials are verified asynchronously share one turn', async (t) => {
  const { port } = await serve(t, {
    limits: { overloadDelayMs: 50 },
    authenticate: (request) => Promise.resolve(users[request.headers['x-user'] as string]),
    authorize: () => true,
  });
  const recover = fallBehind('');
  t.teardown(recover);
  await until(behindWith(''), 'the process is behind with unverified requests');
  for (const user of ['jane', 'joe']) {
    t.is((await call(port, 'GET', one, { headers: { 'x-user': user } })).status, 429);
  }
  recover();
});
