import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { FakeRegistry } from './support/fake-registry.ts';
import { raw, type ServeOptions, serve } from './support/serve.ts';
import { dialerTo, httpUpstream, rawUpstream, runner, toAgent } from './support/upstream.ts';

const exec = '/api/v1/namespaces/default/pods/p/exec';

function upgradeRequest(path: string, more = '', method = 'GET'): string {
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: test/1\r\n${more}\r\n`;
}

async function serveUpgrades(t: ExecutionContext, port: number, options: ServeOptions = {}) {
  const registry = new FakeRegistry([runner]);
  const service = registry.service(runner);
  service.on.connect = toAgent as never;
  const served = await serve(t, { registry, nodeDialer: dialerTo(port), ...options });
  served.api.acceptUpgrades(served.server);
  return { service, ...served };
}

/** A client with an open tunnel, and the socket of the agent. */
async function tunnel(t: ExecutionContext, options: ServeOptions = {}) {
  const heads: string[] = [];
  const ends: Socket[] = [];
  const upstream = await rawUpstream(t, (socket, head) => {
    heads.push(head);
    ends.push(socket);
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test/1\r\nX-Stream-Protocol-Version: v5\r\n\r\nwelcome ',
    );
  });
  const served = await serveUpgrades(t, upstream, options);
  const client = connect({ port: served.port, host: '127.0.0.1', allowHalfOpen: true });
  t.teardown(() => client.destroy());
  let text = '';
  client.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  client.on('error', () => {});
  client.write(
    `${upgradeRequest(`${exec}?command=a`, 'X-Stream-Protocol-Version: v5\r\nX-Stream-Protocol-Version: v4\r\nAudit-ID: one\r\n', 'POST')}early `,
  );
  await until(() => text.includes('welcome'), 'the tunnel is open');
  return { ...served, client, agent: ends[0] as Socket, head: heads[0] ?? '', text: () => text };
}

test('an upgrade that the agent accepts is a tunnel: bytes, also early ones, are unchanged in both directions', async (t) => {
  const { client, agent, head, text } = await tunnel(t);
  t.regex(head, /^POST \/exec\?command=a HTTP\/1\.1\r\n/);
  t.regex(head, /connection: Upgrade\r\nupgrade: test\/1\r\n/i);
  t.regex(
    head,
    /x-stream-protocol-version: v5\r\nx-stream-protocol-version: v4\r\n/i,
    'one line each, as they were sent',
  );
  t.regex(
    text(),
    /^HTTP\/1\.1 101 Switching Protocols\r\n.*X-Stream-Protocol-Version: v5\r\n.*Audit-Id: one\r\n\r\nwelcome $/s,
  );
  let arrived = '';
  agent.on('data', (chunk) => {
    arrived += chunk.toString('latin1');
  });
  agent.resume();
  client.write(Buffer.from([0, 255, 10, 13]));
  await until(() => arrived === 'early \x00\xff\n\r', 'the agent has received all bytes');
  agent.end('bye');
  await once(client, 'end');
  t.true(text().endsWith('welcome bye'), 'bytes before the end are received');
});

test('a client that disconnects closes the tunnel at the agent, and draining closes both ends', async (t) => {
  const first = await tunnel(t);
  first.agent.resume();
  const ended = once(first.agent, 'close');
  first.client.destroy();
  await ended;

  const second = await tunnel(t);
  second.agent.resume();
  const both = Promise.all([once(second.agent, 'close'), once(second.client, 'close')]);
  second.client.once('end', () => second.client.end());
  await second.api.drain();
  await both;
  t.pass();
});

test('an agent that does not read exerts back pressure on the client', async (t) => {
  const { client, agent } = await tunnel(t);
  agent.pause();
  const chunk = Buffer.alloc(1024 * 1024, 'x');
  let accepted = 0;
  const total = 64;
  const write = (): void => {
    while (accepted < total) {
      accepted += 1;
      if (!client.write(chunk)) return void client.once('drain', write);
    }
  };
  write();
  let before = -1;
  await until(() => {
    const still = accepted > 0 && accepted === before;
    before = accepted;
    return still;
  }, 'the client is blocked');
  t.true(accepted < total);
  let received = 0;
  agent.on('data', (part) => {
    received += part.length;
  });
  agent.resume();
  await until(() => received === total * chunk.length + 'early '.length, 'the agent has received everything');
});

test('an upgrade request that the server or the agent rejects gets a plain HTTP response', async (t) => {
  const upstream = await httpUpstream(t, (_request, response) => {
    response
      .writeHead(400, { 'Content-Type': 'text/plain' })
      .end('you must specify at least 1 of stdin, stdout, stderr\n');
  });
  const { port } = await serveUpgrades(t, upstream);
  const answer = await raw(port, upgradeRequest(exec));
  t.regex(answer, /^HTTP\/1\.1 400 Bad Request\r\n.*Connection: close\r\n/s);
  t.regex(answer, /"message":"you must specify at least 1 of stdin, stdout, stderr","reason":"BadRequest"/);
  const { port: closed, service } = await serveUpgrades(t, upstream, { authorize: () => false });
  t.regex(
    await raw(closed, upgradeRequest(exec)),
    /^HTTP\/1\.1 403 Forbidden\r\n.*cannot get resource \\"pods\/exec\\"/s,
  );
  t.deepEqual(service.calls, []);
});

test('a long response to a rejected upgrade request is complete', async (t) => {
  const body = 'x'.repeat(8 * 1024 * 1024);
  const upstream = await httpUpstream(t, (_request, response) => response.end(body));
  const { port } = await serveUpgrades(t, upstream);
  const answer = await raw(port, upgradeRequest('/api/v1/namespaces/default/pods/p/proxy/'));
  t.is(answer.slice(answer.indexOf('\r\n\r\n') + 4).length, body.length);
});

test('upgrade headers of other requests are ignored: they are served with their bodies, and the connection continues', async (t) => {
  const { port, service } = await serveUpgrades(t, 1);
  const h2c = 'HTTP2-Settings: AAMAAABkAARAAAAA\r\n';
  const list = upgradeRequest('/api/v1/namespaces/default/pods', h2c).replace(
    'Upgrade\r\n',
    'Upgrade, HTTP2-Settings\r\n',
  );
  const body = '{"metadata":{"name":"x"}}';
  const typed = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  const create = upgradeRequest('/api/v1/namespaces/default/pods', typed, 'POST') + body;
  const last = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
  const steps = [
    list,
    create,
    upgradeRequest('/version'),
    upgradeRequest('/api/v1/namespaces/default/pods/p/log'),
    last,
  ];
  service.on.connect = async () => ({ to: 'nothing' });
  const socket = connect(port, '127.0.0.1');
  const closed = once(socket, 'close');
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  for (const [done, step] of steps.entries()) {
    socket.write(step);
    await until(() => text.split('HTTP/1.1 2').length === done + 2, `answer ${done + 1}`);
  }
  await closed;
  t.deepEqual(text.match(/HTTP\/1\.1 \d+/g), [
    'HTTP/1.1 200',
    'HTTP/1.1 201',
    'HTTP/1.1 200',
    'HTTP/1.1 200',
    'HTTP/1.1 200',
  ]);
  const bodies = service.calls.filter(({ operation }) => operation === 'create').map(({ args }) => args[2]);
  t.deepEqual(bodies, [{ bytes: Buffer.from(body), format: 'json' }]);
});

test('an upgrade request in the middle of a pipeline closes the connection, since its response would be ambiguous', async (t) => {
  const { port, service } = await serveUpgrades(t, 1);
  service.on.list = () => new Promise(() => {});
  t.is(
    await raw(port, `GET /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: localhost\r\n\r\n${upgradeRequest(exec)}`),
    '',
  );
});
