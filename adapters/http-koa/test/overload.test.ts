import type { UserInfo } from '@keelson/core';
import { eventLoopTurns } from '@keelson/core/runtime';
import test from 'ava';
import { configMap, FakeRegistry, stored } from './support/fake-registry.ts';
import { admin, call, eventually, serve } from './support/serve.ts';

const one = '/api/v1/namespaces/default/configmaps/a';
const lease = '/apis/coordination.k8s.io/v1/namespaces/default/leases/a';
const users: Readonly<Record<string, UserInfo>> = { admin, jane: { name: 'jane', groups: [] } };

/** Keeps the process behind its work by so many milliseconds until the function returned is called. */
function fallBehind(): () => void {
  let behind = true;
  const work = () => {
    const until = performance.now() + 2;
    while (performance.now() < until);
    if (behind) eventLoopTurns.add(work);
  };
  for (let i = 0; i < 100; i++) work();
  return () => {
    behind = false;
  };
}

test.serial(
  'a process that is behind its work refuses ordinary requests, not those of masters, for leases and of health checks',
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
    const recover = fallBehind();
    t.teardown(recover);
    await eventually(() => eventLoopTurns.delayMs > 60, 'the process is behind');
    const refused = await get(one, 'jane');
    t.is(refused.status, 429);
    t.is(refused.headers['retry-after'], '1');
    t.is(refused.text, 'Too many requests, please try again later.\n');
    t.is((await get(one, 'admin')).status, 200);
    t.is((await get(lease, 'jane')).status, 404, 'served, although this server has no leases');
    t.is((await get('/readyz', 'jane')).status, 200);
    recover();
    await eventually(() => eventLoopTurns.delayMs === 0, 'the process has caught up');
    t.is((await get(one, 'jane')).status, 200);
  },
);

test.serial('masters are refused as well when the process is far behind, whoever they are known by', async (t) => {
  const { port } = await serve(t, { limits: { overloadDelayMs: 20, overloadDelayMastersMs: 50 } });
  const recover = fallBehind();
  t.teardown(recover);
  await eventually(() => eventLoopTurns.delayMs > 60, 'the process is behind');
  t.is((await call(port, 'GET', one)).status, 429);
  t.is((await call(port, 'GET', '/livez')).status, 200);
  recover();
});
