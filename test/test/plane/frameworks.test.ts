import { once } from 'node:events';
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json, text } from 'node:stream/consumers';
import { ConfigMap } from '@keelson/kinds';
import test from 'ava';
import express from 'express';
import fastify from 'fastify';
import { createControlPlane, type PlaneHandler } from 'keelson';
import Koa from 'koa';

const prefix = '/cluster';

/** Applications that answer POST /app with the body they have parsed, and have the API below the prefix. */
const applications: Record<string, (cluster: PlaneHandler) => Promise<Server>> = {
  'Express, app.use(listener)': async ({ listener }) => {
    const app = express().use(listener).use(express.json());
    return createServer(app.post('/app', (request, response) => void response.json(request.body)));
  },
  'Express, app.use(prefix, listener)': async ({ listener }) => {
    const app = express().use(prefix, listener).use(express.json());
    return createServer(app.post('/app', (request, response) => void response.json(request.body)));
  },
  Fastify: async ({ listener }) => {
    const app = fastify();
    app.addHook('onRequest', (request, reply, done) => {
      if (!request.url.startsWith(`${prefix}/`)) return done();
      reply.hijack();
      listener(request.raw, reply.raw);
    });
    app.post('/app', async (request) => request.body);
    await app.ready();
    return app.server;
  },
  Koa: async ({ listener }) => {
    const app = new Koa();
    app.use(async (ctx, next) => {
      if (!ctx.path.startsWith(`${prefix}/`)) return next();
      ctx.respond = false;
      listener(ctx.req, ctx.res);
    });
    app.use(async (ctx) => {
      ctx.body = await json(ctx.req);
    });
    const answer = app.callback();
    return createServer((request, response) => void answer(request, response));
  },
};

const plane = createControlPlane();
test.after.always(async () => (await plane).close());

for (const [i, [name, application]] of Object.entries(applications).entries()) {
  test(`${name}: reads, writes, watches and upgrades of the API, beside a route of the application`, async (t) => {
    t.timeout(120_000);
    const cluster = await (await plane).handler({
      prefix,
      authenticate: ({ headers }) =>
        headers['x-session'] === 'of-jane' ? { name: 'jane', groups: ['system:masters'] } : undefined,
    });
    const server = await application(cluster);
    server.on('upgrade', cluster.upgrade);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.teardown(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const headers = { 'x-session': 'of-jane', 'content-type': 'application/json' };
    const call = (path: string, body?: object) =>
      fetch(url + path, body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers });
    t.deepEqual(await (await call('/app', { of: 'the application' })).json(), { of: 'the application' });

    const maps = `${prefix}/api/v1/namespaces/default/configmaps`;
    const created = await call(maps, { metadata: { name: `map-${i}` }, data: { written: 'over HTTP' } });
    t.is(created.status, 201, await created.clone().text());
    const map = (await created.json()) as { metadata: { resourceVersion: string } };
    t.deepEqual(await (await call(`${maps}/map-${i}`)).json(), map);
    t.is((await (await plane).client(ConfigMap).namespace('default').get(`map-${i}`)).data?.['written'], 'over HTTP');

    const aborted = new AbortController();
    const selection = `fieldSelector=metadata.name%3Dmap-${i}&resourceVersion=${map.metadata.resourceVersion}`;
    const watch = await fetch(`${url}${maps}?watch=1&${selection}`, { headers, signal: aborted.signal });
    t.is((await fetch(`${url}${maps}/map-${i}`, { method: 'DELETE', headers })).status, 200);
    const { value } = (await watch.body?.pipeThrough(new TextDecoderStream()).getReader().read()) ?? {};
    aborted.abort();
    t.regex(value ?? '', /^\{"type":"DELETED"/);

    t.regex(await (await call(`${prefix}/version`)).text(), /"gitVersion":/, 'an endpoint of the API');
    t.is((await call(`${prefix}/apis/none`)).status, 404);
    t.is((await fetch(`${url}${maps}`)).status, 401, 'a request without a user');

    const upgrade = { connection: 'Upgrade', upgrade: 'SPDY/3.1', 'x-stream-protocol-version': 'v4.channel.k8s.io' };
    const exec = `${url}${prefix}/api/v1/namespaces/default/pods/none/exec?command=true`;
    const [answer] = await once(
      httpRequest(exec, { method: 'POST', headers: { ...headers, ...upgrade } }).end(),
      'response',
    );
    t.is(answer.statusCode, 404);
    t.regex(await text(answer), /pods \\"none\\" not found/);

    const open = await fetch(`${url}${maps}?watch=1`, { headers });
    await cluster.close();
    await open.text();
    await new Promise((resolve) => server.close(resolve));
    t.pass('the server closes after the handler, which ends watches');
  });
}
