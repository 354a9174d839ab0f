import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import type { ConnectLocation } from '@keelson/core';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { FakeRegistry } from './support/fake-registry.ts';
import { call, raw, serve } from './support/serve.ts';
import { dialerTo, httpUpstream, rawUpstream, runner, toAgent } from './support/upstream.ts';

const pod = '/api/v1/namespaces/default/pods/p';
const permitted = 'the backend attempted to redirect this request, which is not permitted';

/** Headers by which an upstream would affect the client in the name of the API server. */
const hostile = {
  'Content-Type': 'text/html',
  'Set-Cookie': 'a=1',
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Credentials': 'true',
  'Alt-Svc': 'h2="evil.example:443"',
  'Clear-Site-Data': '"*"',
  'Service-Worker-Allowed': '/',
  'Strict-Transport-Security': 'max-age=1',
  'WWW-Authenticate': 'Basic realm="x"',
  Refresh: '0; url=http://evil.example/',
  Warning: '299 - "run this command"',
};

function dropped(t: ExecutionContext, headers: IncomingHttpHeaders): void {
  for (const name of Object.keys(hostile))
    if (name !== 'Content-Type') t.is(headers[name.toLowerCase()], undefined, name);
}

/** A server that forwards requests to this port: of the agent, or with `page` of another server on the node. */
async function serveForwarding(t: ExecutionContext, port: number, { page = false } = {}) {
  const registry = new FakeRegistry([runner]);
  const toPage = async (
    ...[, , , { query, path }]: [unknown, unknown, unknown, { query: { text: string }; path: string }]
  ): Promise<ConnectLocation> => ({ to: 'node', node: 'n', port, scheme: 'http', path, query: query.text });
  registry.service(runner).on.connect = (page ? toPage : toAgent) as never;
  const served = await serve(t, { registry, nodeDialer: dialerTo(port) });
  served.api.acceptUpgrades(served.server);
  return served;
}

const upgradeRequest = (path: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;

for (const way of ['log', 'exec', 'proxy/x'] as const) {
  test(`a redirect of an agent is answered with 502, and neither followed nor forwarded: ${way}`, async (t) => {
    let followed = false;
    const other = await httpUpstream(t, (_request, response) => {
      followed = true;
      response.end();
    });
    for (const code of [300, 301, 302, 303, 304, 307, 308, 399]) {
      const agent = await rawUpstream(t, (socket) => {
        socket.end(`HTTP/1.1 ${code} Moved\r\nLocation: http://127.0.0.1:${other}/\r\nContent-Length: 4\r\n\r\nbody`);
      });
      const { port } = await serveForwarding(t, agent);
      const reply = await call(port, 'GET', `${pod}/${way}`, { headers: { authorization: 'Bearer secret' } });
      t.like(reply.json, { kind: 'Status', code: 502, status: 'Failure' });
      t.is(reply.json.message, `${permitted}: the agent of node "n" at 127.0.0.1:${agent} answered ${code}`);
      t.is(reply.headers.location, undefined);
      if (way === 'log') continue;
      const upgraded = await raw(port, upgradeRequest(`${pod}/${way}`));
      t.regex(upgraded, /^HTTP\/1\.1 502 Bad Gateway\r\n/);
      t.notRegex(upgraded, /^location:/im);
    }
    t.false(followed);
  });

  test(`a response of an agent sets no cookies or CORS headers, and is no page in the origin of the API: ${way}`, async (t) => {
    const agent = await httpUpstream(t, (_request, response) => {
      response.writeHead(200, { ...hostile, Location: 'http://evil.example/' }).end('<script>1</script>');
    });
    const { port } = await serveForwarding(t, agent);
    const reply = await call(port, 'GET', `${pod}/${way}`);
    t.deepEqual([reply.status, reply.text], [200, '<script>1</script>']);
    t.regex(reply.headers['content-type'] ?? '', /^text\/plain(?:; charset=utf-8)?$/);
    t.is(reply.headers['x-content-type-options'], 'nosniff');
    t.is(reply.headers.location, undefined);
    dropped(t, reply.headers);
  });

  test(`an invalid status code of an agent is answered with 502: ${way}`, async (t) => {
    for (const code of ['000', '099', '600', '999', '101']) {
      const agent = await rawUpstream(t, (socket) => {
        socket.end(`HTTP/1.1 ${code} Odd\r\nContent-Length: 0\r\n\r\n`);
      });
      const { port } = await serveForwarding(t, agent);
      t.is((await call(port, 'GET', `${pod}/${way}`)).status, 502, code);
    }
  });

  test(`an error of an agent becomes a Status whose message is safe to print: ${way}`, async (t) => {
    const text = '\u001b[31mred\u001b[0m\u001b]0;title\u0007 \u202eevil\u0000\n\tline\u009b2J';
    const bodies = [
      ['text/plain', text],
      ['application/json', JSON.stringify({ kind: 'Status', message: text, code: 200 })],
    ] as const;
    for (const [type, body] of bodies) {
      const agent = await httpUpstream(t, (_request, response) => {
        response.writeHead(418, { ...hostile, 'Content-Type': type }).end(body);
      });
      const { port } = await serveForwarding(t, agent);
      const reply = await call(port, 'GET', `${pod}/${way}`);
      t.like(reply.json, { kind: 'Status', code: 418, message: 'red evil\n\tline' });
      dropped(t, reply.headers);
    }
  });
}

test('the node proxy keeps content types that browsers do not execute, and replaces others by text/plain', async (t) => {
  let type = '';
  const agent = await httpUpstream(t, (_request, response) => {
    response.writeHead(200, { 'Content-Type': type, 'Content-Disposition': 'attachment' }).end('x');
  });
  const { port } = await serveForwarding(t, agent);
  for (type of [
    'application/json',
    'text/plain; version=0.0.4; charset=utf-8',
    'application/openmetrics-text; version=1.0.0',
  ]) {
    const reply = await call(port, 'GET', `${pod}/proxy/metrics`);
    t.deepEqual([reply.headers['content-type'], reply.headers['content-disposition']], [type, 'attachment']);
  }
  for (type of [
    'image/svg+xml',
    'application/xhtml+xml',
    'text/xml',
    'text/javascript',
    'multipart/x-mixed-replace',
    'TEXT/HTML',
  ]) {
    t.is((await call(port, 'GET', `${pod}/proxy/`)).headers['content-type'], 'text/plain; charset=utf-8', type);
  }
});

test('a 101 that was not requested, or names another protocol, is a 502 and closes the connection to the agent', async (t) => {
  for (const upgrade of ['h2c', 'websocket, h2c', '\u009b2J']) {
    const ends: Socket[] = [];
    const agent = await rawUpstream(t, (socket) => {
      ends.push(socket);
      socket.write(
        Buffer.from(`HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\n\r\n`, 'latin1'),
      );
      socket.resume();
    });
    const { port } = await serveForwarding(t, agent);
    const answer = await raw(port, upgradeRequest(`${pod}/exec`));
    t.regex(answer, /^HTTP\/1\.1 502 Bad Gateway\r\n/, upgrade);
    await until(() => ends.every(({ destroyed }) => destroyed), 'the connection to the agent is closed');
  }
  const agent = await rawUpstream(t, (socket) => {
    socket.write('HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  });
  const { port } = await serveForwarding(t, agent);
  for (const way of ['log', 'exec', 'proxy/']) t.is((await call(port, 'GET', `${pod}/${way}`)).status, 502, way);
});

test('only a 101 opens a tunnel: after any other response to an upgrade request both connections are closed', async (t) => {
  for (const code of [200, 204, 302, 400, 403, 500]) {
    const ends: Socket[] = [];
    let late = '';
    const agent = await rawUpstream(t, (socket) => {
      ends.push(socket);
      socket.on('data', (chunk) => {
        late += String(chunk);
      });
      socket.write(
        `HTTP/1.1 ${code} ${STATUS_CODES[code]}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n`,
      );
    });
    const { port } = await serveForwarding(t, agent);
    const answer = await raw(
      port,
      `${upgradeRequest(`${pod}/exec`)}GET /exec/other HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    );
    t.regex(answer, /^HTTP\/1\.1 (?:200|204|400|500|502|503) /);
    t.is(answer.match(/HTTP\/1\.1 /g)?.length, 1, 'bytes behind the request are discarded');
    await until(() => ends.every(({ destroyed }) => destroyed), `closed after ${code}`);
    t.is(late, '');
  }
});

test('a 101 response contains only the headers that the upgraded protocol needs', async (t) => {
  const agent = await rawUpstream(t, (socket) => {
    const head = [
      '101 \u001b[31m',
      'Connection: Upgrade',
      'Upgrade: WebSocket',
      'Sec-WebSocket-Accept: x',
      'Set-Cookie: a=1',
    ];
    socket.end(Buffer.from(`HTTP/1.1 ${head.join('\r\n')}\r\nLocation: http://evil.example/\r\n\r\n`, 'latin1'));
  });
  const { port } = await serveForwarding(t, agent);
  const [head = ''] = (await raw(port, upgradeRequest(`${pod}/exec`))).split('\r\n\r\n');
  const [first, ...headers] = head.split('\r\n');
  t.is(first, 'HTTP/1.1 101 Switching Protocols');
  t.deepEqual(
    headers.map((line) => line.replace(/:.*/, '')),
    ['Connection', 'Upgrade', 'Sec-WebSocket-Accept', 'Audit-Id'],
  );
});

test('credentials, cookies and headers that assert an identity are not forwarded', async (t) => {
  const sent = {
    authorization: 'Bearer secret',
    cookie: 'session=1',
    forwarded: 'for=1.2.3.4',
    'x-forwarded-for': '1.2.3.4',
    'x-forwarded-host': 'evil.example',
    'x-real-ip': '1.2.3.4',
    'x-remote-user': 'admin',
    'x-remote-group': 'system:masters',
    'x-remote-extra-scopes': 'all',
  };
  for (const page of [false, true]) {
    let seen: IncomingHttpHeaders = {};
    const upstream = await httpUpstream(t, (request, response) => {
      seen = request.headers;
      response.end();
    });
    const { port } = await serveForwarding(t, upstream, { page });
    t.is((await call(port, 'GET', `${pod}/proxy/`, { headers: { ...sent, 'x-own': 'kept' } })).status, 200);
    t.is(seen['x-own'], 'kept');
    for (const name of Object.keys(sent)) t.is(seen[name], undefined, name);
  }
});

test('a proxied page keeps its status and type, in a sandboxed origin and without headers for the whole origin', async (t) => {
  const upstream = await httpUpstream(t, (_request, response) => {
    response.writeHead(404, { ...hostile, 'X-App': 'kept', ETag: '"1"' }).end('<h1>no such page</h1>');
  });
  const { port } = await serveForwarding(t, upstream, { page: true });
  const reply = await call(port, 'GET', `${pod}/proxy/x`);
  t.deepEqual([reply.status, reply.text, reply.headers['content-type']], [404, '<h1>no such page</h1>', 'text/html']);
  t.deepEqual([reply.headers['x-app'], reply.headers.etag], ['kept', '"1"']);
  t.is(reply.headers['content-security-policy'], 'sandbox allow-downloads allow-forms allow-popups allow-scripts');
  dropped(t, reply.headers);
});

for (const [coding, compress] of [
  [undefined, (page: Buffer) => page],
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
] as const) {
  test(`absolute links of a proxied page lead through the proxy: content coding ${coding}`, async (t) => {
    let forwardedUri: string | undefined;
    const upstream = await httpUpstream(t, (request, response) => {
      forwardedUri = String(request.headers['x-forwarded-uri']);
      const page = compress(Buffer.from(pageWith('', `http://127.0.0.1:${upstream}`), 'latin1'));
      const headers = { 'Content-Type': 'text/html; charset=iso-8859-1', 'Content-Length': page.length };
      response.writeHead(200, { ...headers, ...(coding ? { 'Content-Encoding': coding } : {}) });
      for (let i = 0; i < page.length; i += 7) response.write(page.subarray(i, i + 7));
      response.end();
    });
    const { port } = await serveForwarding(t, upstream, { page: true });
    const reply = await call(port, 'GET', `${pod}/proxy/a/b?x=1`, { headers: { 'x-forwarded-uri': '/forged' } });
    t.is(reply.body.toString('latin1'), pageWith(`${pod}/proxy`, `${pod}/proxy`));
    t.is(reply.headers['content-encoding'], undefined);
    t.is(forwardedUri, `${pod}/proxy/a/b`);
  });
}

/** A page whose absolute links begin with `prefix`, and those with the address of its server with `own`. */
const pageWith = (prefix: string, own: string) => `<!DOCTYPE html>\r
<HTML><!-- <a href="/comment"> --><body BACKGROUND="${prefix}/b.png" data-href='/other'>
<a class=x href="${prefix}/a?b=1&amp;c=%22#d" >caf\xe9 \xa0</a><a href="relative"><a href="//cdn.example/x"><a href="#top">
<img alt="1 > 0" src="${prefix}/i.png" usemap="#m"><form action="${own}/f"><a href="https://other.example/x"></a>
<a href="${pod}/proxy/already"><a href><p>a < b & c</p>
<script>document.write('<a href="/in-script">')</script><script src="${prefix}/s.js"></script></body></HTML>
`;

test('a long tag is passed as it is, and other types are not read as pages', async (t) => {
  let type = 'text/html';
  const long = `<a title="${'x'.repeat(2 * 1024 * 1024)}" href="/x">`;
  const page = `<a href="/x">${long}<a href="/x">`;
  const upstream = await httpUpstream(t, (_request, response) => {
    response.writeHead(200, { 'Content-Type': type }).end(page);
  });
  const { port } = await serveForwarding(t, upstream, { page: true });
  const rewritten = `<a href="${pod}/proxy/x">`;
  t.is((await call(port, 'GET', `${pod}/proxy/`)).text, `${rewritten}${long}${rewritten}`);
  type = 'text/plain';
  t.is((await call(port, 'GET', `${pod}/proxy/`)).text, page);
});

test('a redirect of a proxied page leads to a path below the proxy; one to another server is a 502', async (t) => {
  let location = '';
  const upstream = await httpUpstream(t, (_request, response) => response.writeHead(302, { Location: location }).end());
  const { port } = await serveForwarding(t, upstream, { page: true });
  const below = [
    ['/login?next=%2F#top', '/login?next=%2F#top'],
    ['other', '/a/other'],
    ['../../../../secrets', '/secrets'],
    ['/%2e%2e/%2E%2e/secrets', '/secrets'],
    ['/..\\..\\secrets', '/secrets'],
    [`http://127.0.0.1:${upstream}/b`, '/b'],
    [`//127.0.0.1:${upstream}/b`, '/b'],
  ] as const;
  for (const [sent, path] of below) {
    location = sent;
    const reply = await call(port, 'GET', `${pod}/proxy/a/b`);
    t.deepEqual([reply.status, reply.headers.location], [302, `${pod}/proxy${path}`], sent);
  }
  const elsewhere = [
    'http://evil.example/',
    '//evil.example',
    '\\\\evil.example',
    'javascript:alert(1)',
    'http://[bad',
  ];
  for (location of [
    ...elsewhere,
    `https://127.0.0.1:${upstream}/`,
    `http://u:p@127.0.0.1:${upstream}/`,
    'http://127.0.0.1:1/',
  ]) {
    const reply = await call(port, 'GET', `${pod}/proxy/a/b`);
    t.deepEqual([reply.status, reply.headers.location], [502, undefined], location);
    t.true(reply.json.message.startsWith(permitted));
  }
});
