import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as httpRequest, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LogFields, Logger } from '@keelson/core/runtime';
import { ClusterRole, ClusterRoleBinding, ConfigMap, Pod, Role, RoleBinding } from '@keelson/kinds';
import Router from '@koa/router';
import test, { type ExecutionContext } from 'ava';
import Koa from 'koa';
import { createControlPlane, type HandlerOptions, type RequestState } from '../../src/index.ts';

interface Line extends LogFields {
  readonly level: string;
  readonly message: string;
}

/** A logger that keeps its lines, with the fields of `child`. */
function keepingLogger(lines: Line[], bound: LogFields = {}): Logger {
  const at = (level: string) => (message: string, fields?: LogFields) => {
    lines.push({ ...bound, ...fields, level, message });
  };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => keepingLogger(lines, { ...bound, ...fields }),
  };
}

const tokens = { jane: 'Bearer token-jane', joe: 'Bearer token-joe', admin: 'Bearer token-admin' };

/** A plane with three users: jane may read ConfigMaps and call /team, joe may only call /team. */
async function planeWithUsers(t: ExecutionContext) {
  const lines: Line[] = [];
  const folder = mkdtempSync(join(tmpdir(), 'keelson-routes-'));
  const tokenFile = join(folder, 'tokens.csv');
  const users = ['token-jane,jane,1', 'token-joe,joe,2', 'token-admin,admin,3,"system:masters"'];
  writeFileSync(tokenFile, `${users.join('\n')}\n`, { mode: 0o600 });
  const plane = await createControlPlane({ authentication: { tokenFile }, logger: keepingLogger(lines) });
  t.teardown(async () => {
    await plane.close();
    rmSync(folder, { recursive: true });
  });
  const apiGroup = 'rbac.authorization.k8s.io';
  await plane.client(ClusterRole).create({
    metadata: { name: 'team' },
    rules: [{ verbs: ['*'], nonResourceURLs: ['/team', '/team/*'] }],
  });
  await plane.client(ClusterRoleBinding).create({
    metadata: { name: 'team' },
    roleRef: { apiGroup, kind: 'ClusterRole', name: 'team' },
    subjects: [{ apiGroup, kind: 'Group', name: 'system:authenticated' }],
  });
  await plane
    .client(Role)
    .namespace('default')
    .create({
      metadata: { name: 'reader' },
      rules: [
        { verbs: ['get', 'list', 'update'], apiGroups: [''], resources: ['configmaps'] },
        { verbs: ['list'], apiGroups: [''], resources: ['pods'], resourceNames: ['one'] },
      ],
    });
  await plane
    .client(RoleBinding)
    .namespace('default')
    .create({
      metadata: { name: 'reader' },
      roleRef: { apiGroup, kind: 'Role', name: 'reader' },
      subjects: [{ apiGroup, kind: 'User', name: 'jane' }],
    });
  await plane
    .client(ConfigMap)
    .namespace('default')
    .create({ metadata: { name: 'settings' }, data: { colour: 'green' } });
  return { plane, lines };
}

async function serve(t: ExecutionContext, listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function handlerOn(t: ExecutionContext, options: HandlerOptions) {
  const { plane } = await planeWithUsers(t);
  return { plane, handler: await plane.handler(options) };
}

test('routes get the user, an authorizer, clients with the permissions of the user, and clients of the plane', async (t) => {
  const { plane, lines } = await planeWithUsers(t);
  const router = new Router<RequestState>({ prefix: '/team' });
  router.get('/info', async (ctx) => {
    const { user, can, requestId, logger, clock } = ctx.state;
    logger.info('asked');
    ctx.body = {
      user: user.name,
      groups: user.groups,
      requestId,
      now: clock.now() > 0,
      reads: await can({ verb: 'get', resource: 'configmaps', namespace: 'default', name: 'settings' }),
      writes: await can({ verb: 'create', resource: 'configmaps', namespace: 'default' }),
      health: await can({ verb: 'get', path: '/healthz' }),
      metrics: await can({ verb: 'get', path: '/metrics' }),
    };
  });
  router.get('/settings', async (ctx) => {
    ctx.body = (await ctx.state.client(ConfigMap).namespace('default').get('settings')).data;
  });
  router.get('/all', async (ctx) => {
    ctx.body = (await ctx.state.client(ConfigMap).list()).items.length;
  });
  router.get('/pods', async (ctx) => {
    const fieldSelector = String(ctx.query['selector'] ?? '');
    ctx.body = (await ctx.state.client(Pod).namespace('default').list({ fieldSelector })).items;
  });
  router.put('/new', async (ctx) => {
    ctx.body = await ctx.state
      .client(ConfigMap)
      .namespace('default')
      .update({ metadata: { name: 'absent' } });
  });
  router.post('/count', async (ctx) => {
    const body = JSON.parse(String(await ctx.state.readBody())) as { by: number };
    const maps = ctx.state.plane.client(ConfigMap).namespace('default');
    const made = await maps.create({ metadata: { generateName: 'count-' }, data: { by: String(body.by) } });
    ctx.status = 201;
    ctx.body = made.data;
  });
  const handler = await plane.handler({ routes: [router] });
  const { url } = await serve(t, handler.listener);
  const call = (path: string, authorization = tokens.jane, init: RequestInit = {}) =>
    fetch(`${url}${path}`, { ...init, headers: { authorization, ...init.headers } });

  const info = await call('/team/info', tokens.jane, { headers: { 'audit-id': 'one' } });
  t.deepEqual(await info.json(), {
    user: 'jane',
    groups: ['system:authenticated'],
    requestId: 'one',
    now: true,
    reads: true,
    writes: false,
    health: true,
    metrics: false,
  });
  t.like(
    lines.find(({ message }) => message === 'asked'),
    { requestId: 'one', user: 'jane' },
  );
  t.deepEqual(await (await call('/team/settings')).json(), { colour: 'green' });
  const denied = await call('/team/settings', tokens.joe);
  t.is(denied.status, 403);
  t.like(await denied.json(), {
    kind: 'Status',
    message:
      'configmaps "settings" is forbidden: User "joe" cannot get resource "configmaps" in API group "" in the namespace "default"',
  });
  t.is((await call('/team/all')).status, 403, 'the role is for one namespace');
  t.is((await call('/team/pods')).status, 403);
  t.is((await call('/team/pods?selector=metadata.name%3Done')).status, 200, 'a list of one name is about that name');
  t.is((await call('/team/all', tokens.admin)).status, 200);
  const impersonating = await call('/team/all', tokens.admin, { headers: { 'impersonate-user': 'joe' } });
  t.is(impersonating.status, 403, 'the impersonated user counts');
  t.is((await call('/team/new', tokens.jane, { method: 'PUT' })).status, 404, 'the kind does not create on update');
  const posted = await call('/team/count', tokens.joe, { method: 'POST', body: '{"by":2}' });
  t.is(posted.status, 201);
  t.deepEqual(await posted.json(), { by: '2' });
  const large = await call('/team/count', tokens.joe, { method: 'POST', body: 'x'.repeat(3 * 1024 * 1024 + 1) });
  t.is(large.status, 413);
  t.is((await fetch(`${url}/team/info`)).status, 401, 'requests without credentials');
  t.is((await call('/team/info', 'Bearer wrong')).status, 401);
  t.is((await call('/elsewhere')).status, 403, 'paths without a rule are forbidden');
  const missing = await call('/team/missing', tokens.admin);
  t.is(`${missing.status} ${await missing.text()}`, '404 404 page not found\n');
  t.is((await call('/team/count', tokens.admin)).status, 405);
});

test('a route that throws is a 500 Status and a log line, without a trace of the error in the answer', async (t) => {
  const { plane, lines } = await planeWithUsers(t);
  const router = new Router<RequestState>();
  router.get('/team/fails', () => {
    throw new Error('secret detail');
  });
  router.get('/team/teapot', (ctx) => ctx.throw(418, 'no coffee'));
  const { url } = await plane.listen({ routes: [router] });
  const failed = await fetch(`${url}/team/fails`);
  const text = await failed.text();
  t.is(failed.status, 500);
  t.like(JSON.parse(text), { kind: 'Status', status: 'Failure', reason: 'InternalError', code: 500 });
  t.notRegex(text, /secret detail|at .*\.js/);
  const line = lines.find(({ message }) => message === 'request failed unexpectedly');
  t.is((line?.['err'] as Error | undefined)?.message, 'secret detail');
  const teapot = await fetch(`${url}/team/teapot`);
  t.like(await teapot.json(), { kind: 'Status', message: 'no coffee', code: 418 });
});

test('middleware sees every request that passed the filters; without any, resource requests bypass Koa', async (t) => {
  const { plane, lines } = await planeWithUsers(t);
  const seen: string[] = [];
  const router = new Router<RequestState>().get('/team/here', (ctx) => {
    ctx.body = 'here';
  });
  const middleware: Koa.Middleware<RequestState>[] = [
    async (ctx, next) => {
      seen.push(`${ctx.state.user.name} ${ctx.method} ${ctx.path}`);
      ctx.set('X-Team', 'blue');
      if (ctx.get('x-maintenance') === '') return next();
      ctx.status = 503;
      ctx.body = 'later';
    },
    async (ctx, next) => {
      if (ctx.get('x-read') !== '') for await (const _ of ctx.req);
      await next();
    },
  ];
  const { url } = await plane.listen({
    routes: [router],
    middleware: [
      ...middleware,
      // Written without the types of Koa.
      async (ctx, next) => {
        if (ctx.query['late'] !== undefined) ctx.throw(418, 'too late');
        ctx.set('X-State', String((ctx.state as RequestState).user.name));
        await next();
      },
    ],
  });
  t.is((await fetch(`${url}/team/here?late`)).status, 418);
  t.is((await fetch(`${url}/team/here`)).headers.get('x-state'), 'kubernetes-admin');
  for (const path of ['/team/here', '/api/v1/namespaces/default/configmaps/settings', '/healthz', '/api/v1']) {
    const answer = await fetch(url + path);
    t.is(answer.status, 200, path);
    t.is(answer.headers.get('x-team'), 'blue', path);
    t.is(seen.at(-1), `kubernetes-admin GET ${path}`);
  }
  const body = JSON.stringify({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'made' } });
  const headers = { 'content-type': 'application/json' };
  const maps = `${url}/api/v1/namespaces/default/configmaps`;
  t.is((await fetch(maps, { method: 'POST', body, headers })).status, 201);
  t.is((await fetch(maps, { method: 'POST', body, headers: { ...headers, 'x-read': '1' } })).status, 500);
  t.true(
    lines.some(({ err }) =>
      /middleware has read the body of a request/.test(String((err as Error | undefined)?.message)),
    ),
  );
  const watch = await fetch(`${maps}?watch=1&timeoutSeconds=1`);
  t.is(watch.headers.get('x-team'), 'blue');
  t.regex(await watch.text(), /"type":"ADDED"/);

  t.is((await fetch(maps, { headers: { 'x-maintenance': '1' } })).status, 503);
  t.like(lines.at(-1), {
    level: 'warn',
    message: 'middleware answered a request of the resource API',
    path: '/api/v1/namespaces/default/configmaps',
  });
});

for (const [path, conflict] of [
  ['/api/team', '/api'],
  ['/APIs/team.example.com', '/apis'],
  ['/version', '/version'],
  ['/keelson/mine', '/keelson'],
  ['/:anything', '/index.html'],
  ['/*path', '/index.html'],
  [/^\/ap.*pods/, '/api/v1/pods'],
] as const)
  test(`a route on ${path} is rejected at the start, because the API has ${conflict}`, async (t) => {
    const plane = await createControlPlane();
    t.teardown(() => plane.close());
    const router = new Router().post('/team/fine', () => {}).get(path as string, () => {});
    const expected = {
      name: 'UsageError',
      message: new RegExp(`^routes\\[1\\]: the route GET .* path ${conflict} of the API`),
    };
    await t.throwsAsync(plane.listen({ routes: [new Router(), router] }), expected);
    await t.throwsAsync(plane.handler({ routes: [new Router(), router] }), expected);
  });

test('a plane mounted in a Koa application serves the paths below its prefix and leaves the others', async (t) => {
  const { plane, handler } = await handlerOn(t, {
    prefix: '/cluster',
    authenticate: ({ headers }) =>
      headers['x-session'] === 'jane' ? { name: 'jane', groups: ['system:authenticated'] } : undefined,
  });
  await plane
    .client(ConfigMap)
    .namespace('default')
    .create({ metadata: { name: 'second' } });
  const app = new Koa();
  app.use(async (ctx, next) => {
    if (!ctx.path.startsWith('/cluster')) return next();
    ctx.respond = false;
    handler.listener(ctx.req, ctx.res);
  });
  app.use((ctx) => {
    ctx.body = 'the application';
  });
  const callback = app.callback();
  const { url } = await serve(t, (request, response) => void callback(request, response));
  const get = (path: string, headers: Record<string, string> = { authorization: tokens.admin }) =>
    fetch(url + path, { headers, redirect: 'manual' });
  t.is(await (await get('/api/v1')).text(), 'the application');
  t.like(await (await get('/cluster/api/v1')).json(), { kind: 'APIResourceList' });
  t.true(((await (await get('/cluster')).json()) as { paths: string[] }).paths.includes('/api'));
  const index = (await (await get('/cluster/openapi/v3')).json()) as {
    paths: Record<string, { serverRelativeURL: string }>;
  };
  const { serverRelativeURL = '' } = index.paths['api/v1'] ?? {};
  t.regex(serverRelativeURL, /^\/cluster\/openapi\/v3\/api\/v1\?hash=/);
  t.is((await get(serverRelativeURL)).status, 200);
  const moved = await get('/cluster/openapi/v3/api/v1?hash=0');
  t.is(moved.headers.get('location'), serverRelativeURL);
  const maps = '/cluster/api/v1/namespaces/default/configmaps';
  t.is((await get(`${maps}/settings`, { 'x-session': 'jane' })).status, 200, 'the session of the application');
  t.is((await get(`${maps}/settings`, { authorization: tokens.joe })).status, 403);
  t.is((await get(`${maps}/settings`, {})).status, 401, 'nobody is the administrator by default');
  const page = (await (await get(`${maps}?limit=1`)).json()) as { metadata: { continue: string } };
  const next = await get(`${maps}?limit=1&continue=${encodeURIComponent(page.metadata.continue)}`);
  t.is(next.status, 200);
  t.is((await get('/clusters/api/v1')).status, 404, 'another path with the same beginning');
});

test('a prefix that Express has removed from the URL already is accepted', async (t) => {
  const { handler } = await handlerOn(t, { prefix: '/cluster', insecure: true });
  const { url } = await serve(t, (request, response) => {
    const express = request as IncomingMessage & { originalUrl?: string };
    express.originalUrl = request.url ?? '/';
    if (request.url?.startsWith('/cluster')) request.url = request.url.slice('/cluster'.length) || '/';
    handler.listener(request, response, () => response.end('next'));
  });
  t.like(await (await fetch(`${url}/cluster/version`)).json(), { major: '1' });
  t.is(await (await fetch(`${url}/version`)).text(), 'next');
});

test('upgrades below the prefix reach the API, others stay with the server', async (t) => {
  const { handler } = await handlerOn(t, { prefix: '/cluster', insecure: true });
  const { server, url } = await serve(t, (request, response) =>
    handler.listener(request, response, () => response.end(`next ${request.url}`)),
  );
  server.on('upgrade', handler.upgrade);
  const upgrade = (path: string) =>
    new Promise<string>((resolve, reject) => {
      const headers = { connection: 'Upgrade', upgrade: 'SPDY/3.1', 'x-stream-protocol-version': 'v4.channel.k8s.io' };
      httpRequest(url + path, { headers, method: path.includes('exec') ? 'POST' : 'GET' }, (answer) => {
        let text = '';
        answer.on('data', (chunk) => {
          text += chunk;
        });
        answer.on('end', () => resolve(`${answer.statusCode} ${text}`));
      })
        .on('error', reject)
        .end();
    });
  t.regex(
    await upgrade('/cluster/api/v1/namespaces/default/pods/none/exec?command=a'),
    /^404 .*pods \\"none\\" not found/,
  );
  t.regex(await upgrade('/cluster/api/v1/namespaces/default'), /^200 .*"kind":"Namespace"/, 'served over HTTP');
  t.is(await upgrade('/elsewhere'), '200 next /elsewhere', 'as Node does without a listener');
});

test('a prefix that is no path, and contradicting options, are rejected; a closed plane answers 503', async (t) => {
  const { plane } = await planeWithUsers(t);
  await t.throwsAsync(plane.handler({ prefix: 'cluster/' }), { name: 'UsageError', message: /^prefix: "cluster\/"/ });
  await t.throwsAsync(plane.handler({ insecure: true, authenticate: () => undefined }), {
    message: /insecure excludes/,
  });
  await t.throwsAsync(plane.listen({ routes: [{} as never] }), { message: /routes\[0\] is not a router/ });
  const handler = await plane.handler({ prefix: '/cluster', insecure: true });
  const { url } = await serve(t, handler.listener);
  t.is((await fetch(`${url}/cluster/healthz`)).status, 200);
  await handler.close();
  t.is((await fetch(`${url}/cluster/healthz`)).status, 503);
});

test('a plane exposes its clock, logger and metrics', async (t) => {
  const { plane, lines } = await planeWithUsers(t);
  plane.logger.info('of the program');
  t.is(lines.at(-1)?.message, 'of the program');
  t.true(plane.clock.now() > 0);
  t.is(typeof (await plane.metrics.text()), 'string');
});

test('messages about the storage of a program name its option, not that of the command line', async (t) => {
  await t.throwsAsync(createControlPlane({ storage: 'lmbd:x' }), {
    name: 'UsageError',
    message: /^storage "lmbd:x" must begin with one of .*; did you mean lmdb\?$/,
  });
});
