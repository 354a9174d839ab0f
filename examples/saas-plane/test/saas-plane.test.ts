import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Namespace } from '@keelson/kinds';
import { eventually, startTestPlane } from '@keelson/testing';
import test from 'ava';
import { allowSignUp, signUp } from '../src/sign-up.ts';
import { Tenant } from '../src/tenant.ts';
import { tenantController } from '../src/tenant-controller.ts';

test('a user signs up, works in a namespace of its own within the quota of its plan, and in no other', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'saas-plane-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const tokenFile = join(folder, 'users.csv');
  await writeFile(tokenFile, 'token-ann,ann,1\ntoken-bob,bob,2\n', { mode: 0o600 });
  await using plane = await startTestPlane({
    kinds: [Tenant],
    controllers: ['api', tenantController],
    authentication: { tokenFile },
  });
  await allowSignUp(plane);
  // The requests of users; TLS would end at a proxy.
  const handler = await plane.handler({ routes: [signUp] });
  const server = createServer(handler.listener).listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  t.teardown(() => server.closeAllConnections());
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const as = async (user: string | undefined, method: string, path: string, body?: object) => {
    const authorization = user === undefined ? {} : { authorization: `Bearer token-${user}` };
    const answer = await fetch(url + path, {
      method,
      headers: { 'content-type': 'application/json', ...authorization },
      ...(body && { body: JSON.stringify(body) }),
    });
    return {
      code: answer.status,
      body: (await answer.json()) as { readonly message?: string; readonly plan?: string },
    };
  };

  t.is((await as(undefined, 'POST', '/sign-up/acme')).code, 401);
  t.like(await as('ann', 'POST', '/sign-up/acme'), { code: 201, body: { tenant: 'acme', plan: 'free' } });
  t.is((await as('bob', 'POST', '/sign-up/acme')).code, 409);
  await eventually(async () => (await plane.client(Tenant).get('acme')).status?.conditions?.[0]?.status === 'True');

  const maps = '/api/v1/namespaces/tenant-acme/configmaps';
  const create = (user: string, name: string) => as(user, 'POST', maps, { metadata: { name } });
  await eventually(async () => (await create('ann', 'a')).code === 201);
  t.is((await create('ann', 'b')).code, 201);
  const full = await eventually(async () => {
    const answer = await create('ann', `c-${Math.random().toString(36).slice(2)}`);
    return answer.code === 403 && answer;
  });
  t.regex(full.body.message ?? '', /exceeded quota: plan, requested: count\/configmaps=1, used: count\/configmaps=3/);
  t.is((await create('bob', 'x')).code, 403);
  t.is((await as('ann', 'GET', '/apis/saas.example.com/v1/tenants')).code, 403);

  await plane.client(Tenant).patch('acme', 'merge', { spec: { plan: 'team' } });
  await eventually(async () => (await create('ann', 'd')).code === 201);
  await t.throwsAsync(plane.client(Tenant).patch('acme', 'merge', { spec: { owner: 'bob' } }), {
    message: /spec\.owner: Forbidden: field is immutable/,
  });
  await plane.client(Tenant).delete('acme');
  await eventually(async () =>
    (await plane.client(Namespace).list()).items.every(({ metadata }) => metadata.name !== 'tenant-acme'),
  );
});
