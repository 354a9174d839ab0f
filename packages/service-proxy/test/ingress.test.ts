import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type RequestOptions, request } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { NetworkingV1Ingress as Ingress, Secret, Service } from '@keelson/kinds';
import { freePort, temporaryDirectory, until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { IngressProxy } from '../src/index.ts';
import { IngressRoutes } from '../src/ingress/ingress-routes.ts';
import { addService, type Cluster, cluster, listen, machineAddress } from './support/cluster.ts';

const onNetwork = machineAddress === undefined ? test.skip : test;

function backend(name: string) {
  return { service: { name, port: { number: 80 } } };
}

type Path = readonly [path: string, pathType: string, service: string];

function ingress(
  name: string,
  hosts: Readonly<Record<string, readonly Path[]>>,
  more: Partial<Ingress['spec']> = {},
): Ingress {
  return {
    metadata: { name, namespace: 'default' },
    spec: {
      rules: Object.entries(hosts).map(([host, paths]) => ({
        ...(host === '' ? {} : { host }),
        http: { paths: paths.map(([path, pathType, service]) => ({ path, pathType, backend: backend(service) })) },
      })),
      ...more,
    },
  };
}

test('requests are routed by host and path', (t) => {
  const routes = new IngressRoutes([
    ingress(
      'a',
      {
        'shop.example.com': [
          ['/', 'Prefix', 'root'],
          ['/cart', 'Prefix', 'cart'],
          ['/cart/pay', 'Exact', 'pay'],
          ['/cart/pay', 'Prefix', 'under-pay'],
          ['/img/', 'ImplementationSpecific', 'images'],
        ],
        '*.example.com': [['/', 'Prefix', 'any']],
      },
      { defaultBackend: backend('fallback') },
    ),
    ingress('b', { '': [['/only', 'Prefix', 'everywhere']], 'shop.example.com': [['/cart', 'Prefix', 'newer']] }),
  ]);
  const cases: [host: string, path: string, service: string][] = [
    ['shop.example.com', '/', 'root'],
    ['SHOP.example.com', '/x', 'root'],
    ['shop.example.com', '/cart', 'cart'],
    ['shop.example.com', '/cart/', 'cart'],
    ['shop.example.com', '/cart/1', 'cart'],
    ['shop.example.com', '/cartoon', 'root'],
    ['shop.example.com', '/cart/pay', 'pay'],
    ['shop.example.com', '/cart/pay/', 'under-pay'],
    ['shop.example.com', '/img/x.png', 'images'],
    ['shop.example.com', '/img', 'images'],
    ['other.example.com', '/', 'any'],
    ['a.b.example.com', '/', 'fallback'],
    ['example.com', '/', 'fallback'],
    ['else.org', '/only/this', 'everywhere'],
    ['else.org', '/', 'fallback'],
  ];
  for (const [host, path, service] of cases) t.is(routes.find(host, path)?.service, service, `${host}${path}`);
  t.is(new IngressRoutes([]).find('a', '/'), undefined);
});

async function start(t: ExecutionContext, here: Cluster): Promise<IngressProxy> {
  const { table, api: client, events } = here;
  const proxy = new IngressProxy({
    ...{ table, client, events, clock: systemClock, logger: silentLogger },
    listen: { host: '127.0.0.1', port: 0 },
  });
  await proxy.start();
  t.teardown(() => proxy.stop());
  return proxy;
}

interface Answer {
  readonly code: number | undefined;
  readonly body: string;
  readonly headers: IncomingHttpHeaders;
}

async function ask(port: number, host: string, options: RequestOptions & { body?: string } = {}): Promise<Answer> {
  const sent = request({ host: '127.0.0.1', port, agent: false, ...options, headers: { host, ...options.headers } });
  sent.end(options.body);
  const [answer] = await once(sent, 'response');
  return { code: answer.statusCode, body: await text(answer), headers: answer.headers };
}

/** Answers with what it received. */
const echo = (name: string) =>
  createServer((incoming, response) => {
    const { method, url, headers } = incoming;
    response.setHeader('X-Backend', name);
    void text(incoming).then((body) => response.end(JSON.stringify({ name, method, url, headers, body })));
  });

onNetwork('requests reach the service with forwarded headers; error responses are plain text', async (t) => {
  const here = await cluster(t);
  const { port } = await start(t, here);
  t.deepEqual(await ask(port, 'a.example.com').then(({ code, body }) => [code, body]), [404, '404 not found\n']);
  const ingresses = here.api.resource(Ingress).namespace('default');
  await ingresses.create(ingress('web', { 'a.example.com': [['/', 'Prefix', 'web']] }));
  await ingresses.create({
    ...ingress('other', { 'b.example.com': [['/', 'Prefix', 'web']] }, { ingressClassName: 'nginx' }),
  });
  await until(async () => (await ask(port, 'a.example.com')).code === 503);
  await addService(here, 'web', { clusterIP: '127.97.0.1', ports: [{ port: 80 }] }, [
    { port: await freePort() },
    { port: await listen(t, echo('one')) },
  ]);
  await until(async () => (await ask(port, 'a.example.com')).code === 200);
  for (let i = 0; i < 4; i++) t.is((await ask(port, 'a.example.com')).code, 200, 'a dead endpoint is passed over');
  const { body, headers } = await until(async () => {
    const answer = await ask(port, `a.example.com:${port}`, {
      ...{ method: 'POST', path: '/x?y=1', body: 'sent' },
      headers: { 'x-forwarded-for': '6.6.6.6', connection: 'x-hop', 'x-hop': '1' },
    });
    return answer.code === 200 && answer;
  });
  t.is(headers['x-backend'], 'one');
  const received = JSON.parse(body) as { method: string; url: string; headers: IncomingHttpHeaders; body: string };
  t.deepEqual([received.method, received.url, received.body], ['POST', '/x?y=1', 'sent']);
  t.is(received.headers.host, `a.example.com:${port}`);
  t.is(received.headers['x-forwarded-for'], '127.0.0.1', 'what a client states is replaced');
  t.is(received.headers['x-forwarded-proto'], 'http');
  t.is(received.headers['x-forwarded-host'], `a.example.com:${port}`);
  t.is(received.headers['x-hop'], undefined);
  t.is((await ask(port, 'b.example.com')).code, 404, 'an Ingress of another class');

  await until(async () => ((await ingresses.get('web')).status?.loadBalancer?.ingress ?? []).length > 0);
  const [published] = (await ingresses.get('web')).status?.loadBalancer?.ingress ?? [];
  t.is(published?.ip, '127.0.0.1');
  t.is((await ingresses.get('other')).status?.loadBalancer?.ingress, undefined);
  await here.api.resource(Service).namespace('default').delete('web');
  await until(async () => (await ask(port, 'a.example.com')).code === 503);
  await ingresses.delete('web');
  await until(async () => (await ask(port, 'a.example.com')).code === 404);
});

onNetwork('an upgraded connection carries bytes in both directions', async (t) => {
  const here = await cluster(t);
  const { port } = await start(t, here);
  const server = createServer();
  server.on('upgrade', (incoming, socket) => {
    socket.on('error', () => {});
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: ${incoming.headers.upgrade}\r\nConnection: Upgrade\r\n\r\n`,
    );
    socket.write('hello ');
    socket.pipe(socket);
  });
  await addService(here, 'ws', { clusterIP: '127.97.0.1', ports: [{ port: 80 }] }, [{ port: await listen(t, server) }]);
  await here.api
    .resource(Ingress)
    .namespace('default')
    .create(ingress('ws', { '': [['/', 'Prefix', 'ws']] }));
  await until(async () => {
    const sent = request({ host: '127.0.0.1', port, headers: { connection: 'upgrade', upgrade: 'echo' } });
    sent.on('error', () => {});
    sent.end();
    const opened = once(sent, 'upgrade') as Promise<[{ statusCode: number }, import('node:net').Socket, Buffer]>;
    const refused = once(sent, 'response').then(() => undefined);
    const result = await Promise.race([opened, refused]);
    if (result === undefined) return false;
    const [, socket, head] = result;
    let got = head.toString();
    socket.on('data', (data: Buffer) => {
      got += data.toString();
    });
    socket.write('there');
    await until(() => got === 'hello there');
    socket.destroy();
    return true;
  });
  t.pass();
});

onNetwork('HTTPS is served on the same port with the certificate of the host', async (t) => {
  const here = await cluster(t);
  const { port } = await start(t, here);
  const folder = await temporaryDirectory(t);
  const pair = async (host: string) => {
    const [key, cert] = [join(folder, `${host}.key`), join(folder, `${host}.crt`)];
    await promisify(execFile)('openssl', [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
      ...['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`, '-keyout', key, '-out', cert],
    ]);
    return { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') };
  };
  const base64 = (value: string) => Buffer.from(value).toString('base64');
  const [a, b] = [await pair('a.example.com'), await pair('b.example.com')];
  const secrets = here.api.resource(Secret).namespace('default');
  for (const [name, { cert, key }] of Object.entries({ a, b }))
    await secrets.create({
      metadata: { name },
      type: 'kubernetes.io/tls',
      data: { 'tls.crt': base64(cert), 'tls.key': base64(key) },
    });
  await addService(here, 'web', { clusterIP: '127.97.0.1', ports: [{ port: 80 }] }, [
    { port: await listen(t, echo('one')) },
  ]);
  await here.api
    .resource(Ingress)
    .namespace('default')
    .create(
      ingress(
        'web',
        { 'a.example.com': [['/', 'Prefix', 'web']], 'b.example.com': [['/', 'Prefix', 'web']] },
        {
          tls: [
            { hosts: ['a.example.com'], secretName: 'a' },
            { hosts: ['b.example.com'], secretName: 'b' },
          ],
        },
      ),
    );
  const secure = async (host: string, ca: string) => {
    const sent = tlsRequest({ host: '127.0.0.1', port, servername: host, ca, headers: { host }, agent: false });
    sent.end();
    const [answer] = await once(sent, 'response');
    return JSON.parse(await text(answer)) as { headers: IncomingHttpHeaders };
  };
  for (const [host, ca] of [
    ['a.example.com', a.cert],
    ['b.example.com', b.cert],
  ] as const) {
    const { headers } = await until(() => secure(host, ca));
    t.is(headers['x-forwarded-proto'], 'https', host);
  }
  await t.throwsAsync(secure('c.example.com', a.cert), undefined, 'a host without a certificate');
  t.is((await ask(port, 'a.example.com')).code, 200, 'plain HTTP remains available');
  const silent = connect(port, '127.0.0.1');
  silent.end();
  await once(silent.resume(), 'close');
});
