import { execFileSync } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { RuntimeError } from '@keelson/container-runtime';
import test from 'ava';
import { PodQueryError } from '../../src/base/contracts/pod-queries.ts';
import type { ContainerAddress } from '../../src/base/contracts/pod-streams.ts';
import { execPath, openStreamServer } from '../support/stream-server.ts';

const webSocketHeaders = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': Buffer.alloc(16).toString('base64'),
};
const spdyHeaders = { Connection: 'Upgrade', Upgrade: 'SPDY/3.1', 'X-Stream-Protocol-Version': 'v4.channel.k8s.io' };

const refusing = (reason: PodQueryError['reason']) => () => {
  throw new PodQueryError(reason, `it is ${reason}`);
};

test('a stream that is rejected has an HTTP response, with and without an upgrade', async (t) => {
  const server = await openStreamServer(t, {
    attach: refusing('Invalid'),
    portForward: refusing('Unsupported'),
    exec: ({ container }) => {
      if (container !== 'main') throw new PodQueryError('NotFound', `container "${container}" not found in pod "web"`);
      return async () => {
        throw new Error('not begun');
      };
    },
  });
  for (const headers of [{}, webSocketHeaders, spdyHeaders]) {
    for (const [path, status, body] of [
      [execPath(['ls'], 'output').replace('/main', '/other'), 404, 'container "other" not found in pod "web"'],
      ['/attach/default/web/main?output=1', 400, 'it is Invalid'],
      ['/portForward/default/web', 501, 'it is Unsupported'],
      ['/exec/default/web/main?output=1', 400, 'the query must name a command: ?command=ls&command=/'],
      [execPath(['ls']), 400, 'you must specify at least 1 of input, output, error'],
      [
        '/exec/default/web?command=ls&output=1',
        400,
        'the path must be /exec/{namespace}/{pod}/{container} or /exec/{namespace}/{pod}/{uid}/{container}',
      ],
      ['/exec/a/b/c/d/e?command=ls&output=1', 400, undefined],
      ['/exec/a/%zz/c', 400, 'the path is not well encoded'],
      ['/nowhere', 404, '404 page not found'],
    ] as const) {
      const answer = await server.ask(path, { headers });
      t.is(answer.status, status, path);
      if (body !== undefined) t.is(answer.body, body);
    }
  }
  for (const headers of [{}, { Connection: 'Upgrade', Upgrade: 'h2c' }]) {
    const { status, body } = await server.ask(execPath(['ls'], 'output'), { headers });
    t.deepEqual(
      [status, body],
      [400, 'unable to upgrade: the request must ask for an upgrade to a WebSocket or to SPDY/3.1'],
    );
  }
  const { 'Sec-WebSocket-Key': _, ...incomplete } = webSocketHeaders;
  const broken = await server.ask(execPath(['ls'], 'output'), { headers: incomplete });
  t.deepEqual([broken.status, broken.body], [400, 'unable to upgrade: Missing or invalid Sec-WebSocket-Key header']);
  t.is((await server.ask(execPath(['ls'], 'output'), { method: 'PUT', headers: spdyHeaders })).status, 405);
});

test('an upgrade request to a path without upgrades has a plain response', async (t) => {
  const server = await openStreamServer(t, {});
  for (const headers of [webSocketHeaders, spdyHeaders, { Connection: 'Upgrade', Upgrade: 'h2c' }]) {
    const { status, body, headers: answered } = await server.ask('/healthz', { headers });
    t.deepEqual([status, body, answered.connection], [200, 'ok', 'close']);
  }
});

test('an upgrade request with a body, which may arrive later, has a plain response', async (t) => {
  const server = await openStreamServer(t, {});
  const socket = connect({ port: server.port, host: '127.0.0.1', rejectUnauthorized: false });
  const answer = text(socket);
  const head = 'Host: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 10\r\n\r\n';
  socket.write(`POST /nowhere HTTP/1.1\r\n${head}01234`);
  await server.ask('/healthz');
  socket.end('56789');
  t.regex(await answer, /^HTTP\/1\.1 404 /);
  t.is((await server.ask('/healthz')).status, 200);
});

test('--enable-debugging-handlers=false and --anonymous-auth=false apply to upgrades too', async (t) => {
  const closed = await openStreamServer(t, {}, ['--enable-debugging-handlers=false']);
  for (const path of [execPath(['ls'], 'output'), '/attach/a/b/c', '/portForward/a/b', '/run/a/b/c', '/logs/']) {
    for (const headers of [{}, webSocketHeaders, spdyHeaders]) {
      const { status, body } = await closed.ask(path, { headers });
      t.deepEqual([status, body], [405, 'Debug endpoints are disabled.'], path);
    }
  }
  const known = await openStreamServer(t, {}, ['--anonymous-auth=false']);
  for (const headers of [webSocketHeaders, spdyHeaders]) {
    t.is((await known.ask(execPath(['ls'], 'output'), { headers })).status, 401);
    t.is((await known.ask('/nowhere', { headers })).status, 401);
  }
});

test('a container is addressed with or without the UID of its pod', async (t) => {
  const asked: ContainerAddress[] = [];
  const server = await openStreamServer(t, {
    exec: (address) => {
      asked.push(address);
      return refusing('Invalid')();
    },
  });
  await server.ask('/exec/default/web/main?command=ls&output=1');
  await server.ask('/exec/default/web/u1/main?command=ls&output=true');
  t.deepEqual(asked, [
    { namespace: 'default', pod: 'web', uid: undefined, container: 'main' },
    { namespace: 'default', pod: 'web', uid: 'u1', container: 'main' },
  ]);
});

test('/run: a command is split at spaces, and its output is the response', async (t) => {
  const server = await openStreamServer(t, {
    run: async ({ uid, container }, command) => {
      if (container !== 'main') throw new PodQueryError('NotFound', 'no such container');
      if (command[0] === 'nope') throw new RuntimeError('StartFailed', 'no such file: nope');
      const exitCode = command[0] === 'false' ? 1 : 0;
      return { stdout: Buffer.from(`${uid ?? '-'} ${command.join('|')}\n`), stderr: Buffer.from('warned'), exitCode };
    },
  });
  const run = async (path: string, method = 'POST') => {
    const { status, body } = await server.ask(path, { method });
    return [status, body];
  };
  t.deepEqual(await run('/run/default/web/main?cmd=ls%20-l%20%20/'), [200, '- ls|-l|/\nwarned']);
  t.deepEqual(await run('/run/default/web/u1/main?cmd=ls'), [200, 'u1 ls\nwarned']);
  t.deepEqual(await run('/run/default/web/main?cmd=false'), [500, 'command "false" exited with 1: - false\nwarned']);
  t.deepEqual(await run('/run/default/web/main?cmd=nope'), [
    500,
    'error executing command in container: no such file: nope',
  ]);
  t.deepEqual(await run('/run/default/web/other?cmd=ls'), [404, 'no such container']);
  t.is((await run('/run/default/web/main'))[0], 400);
  t.is((await run('/run/default/web/main?cmd=ls', 'GET'))[0], 405);
});

test('/logs: only files and folders below the log directory of the system are served', async (t) => {
  const server = await openStreamServer(t, {});
  const logs = join(server.directory, 'log');
  await mkdir(join(logs, 'pods/a b'), { recursive: true });
  await writeFile(join(logs, 'sys.log'), 'line\n');
  await writeFile(join(logs, 'empty.log'), '');
  await writeFile(join(logs, 'pods/a b/<0>.log'), 'zero\n');
  await symlink(join(logs, 'pods/a b/<0>.log'), join(logs, 'inside.log'));
  await writeFile(join(server.directory, 'secret'), 'secret\n');
  await symlink(join(server.directory, 'secret'), join(logs, 'outside.log'));
  await symlink(server.directory, join(logs, 'outside'));
  await symlink('/dev/zero', join(logs, 'zero'));
  execFileSync('mkfifo', [join(logs, 'pipe')]);
  const get = async (path: string) => {
    const { status, body } = await server.ask(path);
    return [status, body];
  };
  t.deepEqual(await get('/logs/sys.log'), [200, 'line']);
  t.deepEqual(await get('/logs/empty.log'), [200, '']);
  t.deepEqual(await get('/logs/pods/a%20b/%3C0%3E.log'), [200, 'zero']);
  t.deepEqual(await get('/logs/inside.log'), [200, 'zero'], 'links that stay inside');
  const listing = await server.ask('/logs/');
  t.regex(listing.body, /<pre>\n<a href="\.\/empty\.log">empty\.log<\/a>\n[\s\S]*<a href="\.\/pods\/">pods\/<\/a>/);
  t.regex((await server.ask('/logs/pods/a%20b/')).body, /<a href="\.\/%3C0%3E\.log">&lt;0&gt;\.log<\/a>/);
  const folder = await server.ask('/logs/pods');
  t.deepEqual([folder.status, folder.headers.location], [301, 'pods/']);
  t.is((await server.ask('/logs')).headers.location, 'logs/');
  t.is((await server.ask('/logs/sys.log', { method: 'HEAD' })).headers['content-length'], '5');
  for (const path of [
    ...[
      '/logs/nope',
      '/logs/outside.log',
      '/logs/outside/secret',
      '/logs/outside/',
      '/logs/zero',
      '/logs/pipe',
      '/logs/sys.log/x',
    ],
    ...['/logs/..%2fsecret', '/logs/%2e%2e%2fsecret', '/logs/pods%2f..%2f..%2fsecret', '/logs/x%00'],
  ])
    t.deepEqual(await get(path), [404, '404 page not found'], path);
});
