import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { FakeRegistry } from './support/fake-registry.ts';
import { raw, type ServeOptions, serve } from './support/serve.ts';
import { dialerTo, httpUpstream, rawUpstream, runner, toAgent } from './support/upstream.ts';

const exec = '/api/v1/namespaces/default/pods/p/exec';

function wish(path: string, more = '', method = 'GET'): string {
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: test/1\r\n${more}\r\n`;
}

async function upgrading(t: ExecutionContext, port: number, options: ServeOptions = {}) {
  const registry = new FakeRegistry([runner]);
  const service = registry.service(runner);
  service.on.connect = toAgent as never;
  const served = await serve(t, { registry, nodeDialer: dialerTo(port), ...options });
  served.api.acceptUpgrades(served.server);
  return { service, ...served };
}

/** A client that has been let into the tunnel, and the other end of it. */
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
  const served = await upgrading(t, upstream, options);
  const client = connect({ port: served.port, host: '127.0.0.1', allowHalfOpen: true });
  t.teardown(() => client.destroy());
  let text = '';
  client.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  client.on('error', () => {});
  client.write(
    `${wish(`${exec}?command=a`, 'X-Stream-Protocol-Version: v5\r\nX-Stream-Protocol-Version: v4\r\nAudit-ID: one\r\n', 'POST')}early `,
  );
  await until(() => text.includes('welcome'), 'the tunnel stands');
  return { ...served, client, end: ends[0] as Socket, head: heads[0] ?? '', text: () => text };
}

test('where the agent agrees the connection becomes a tunnel: bytes arrive unchanged in both directions, early ones too', async (t) => {
  const { client, end, head, text } = await tunnel(t);
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
  end.on('data', (chunk) => {
    arrived += chunk.toString('latin1');
  });
  end.resume();
  client.write(Buffer.from([0, 255, 10, 13]));
  await until(() => arrived === 'early \x00\xff\n\r', 'the other end has it all');
  end.end('bye');
  await once(client, 'end');
  t.true(text().endsWith('welcome bye'), 'what was sent before the end still arrives');
});

test('who goes away ends the tunnel at its other end, and draining ends both', async (t) => {
  const first = await tunnel(t);
  first.end.resume();
  const ended = once(first.end, 'close');
  first.client.destroy();
  await ended;

  const second = await tunnel(t);
  second.end.resume();
  const both = Promise.all([once(second.end, 'close'), once(second.client, 'close')]);
  second.client.once('end', () => second.client.end());
  await second.api.drain();
  await both;
  t.pass();
});

test('an end that does not read holds the other back', async (t) => {
  const { client, end } = await tunnel(t);
  end.pause();
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
  }, 'it stands still');
  t.true(accepted < total);
  let received = 0;
  end.on('data', (part) => {
    received += part.length;
  });
  end.resume();
  await until(() => received === total * chunk.length + 'early '.length, 'all of it');
});

test('who may not is told in plain HTTP, and so is what the agent says instead of agreeing', async (t) => {
  const upstream = await httpUpstream(t, (_request, response) => {
    response
      .writeHead(400, { 'Content-Type': 'text/plain' })
      .end('you must specify at least 1 of stdin, stdout, stderr\n');
  });
  const { port } = await upgrading(t, upstream);
  const answer = await raw(port, wish(exec));
  t.regex(answer, /^HTTP\/1\.1 400 Bad Request\r\n.*Connection: close\r\n/s);
  t.regex(answer, /"message":"you must specify at least 1 of stdin, stdout, stderr","reason":"BadRequest"/);
  const { port: closed, service } = await upgrading(t, upstream, { authorize: () => false });
  t.regex(await raw(closed, wish(exec)), /^HTTP\/1\.1 403 Forbidden\r\n.*cannot get resource \\"pods\/exec\\"/s);
  t.deepEqual(service.calls, []);
});

test('a long answer to a wish that was not granted arrives whole', async (t) => {
  const body = 'x'.repeat(8 * 1024 * 1024);
  const upstream = await httpUpstream(t, (_request, response) => response.end(body));
  const { port } = await upgrading(t, upstream);
  const answer = await raw(port, wish('/api/v1/namespaces/default/pods/p/proxy/'));
  t.is(answer.slice(answer.indexOf('\r\n\r\n') + 4).length, body.length);
});

test('elsewhere the wish is not heeded: the request is served, with its body, and the connection goes on', async (t) => {
  const { port, service } = await upgrading(t, 1);
  const h2c = 'HTTP2-Settings: AAMAAABkAARAAAAA\r\n';
  const list = wish('/api/v1/namespaces/default/pods', h2c).replace('Upgrade\r\n', 'Upgrade, HTTP2-Settings\r\n');
  const body = '{"metadata":{"name":"x"}}';
  const typed = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  const create = wish('/api/v1/namespaces/default/pods', typed, 'POST') + body;
  const last = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
  const steps = [list, create, wish('/version'), wish('/api/v1/namespaces/default/pods/p/log'), last];
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

test('a wish in the middle of a pipeline ends the connection: its answer could not be told from the others', async (t) => {
  const { port, service } = await upgrading(t, 1);
  service.on.list = () => new Promise(() => {});
  t.is(await raw(port, `GET /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: localhost\r\n\r\n${wish(exec)}`), '');
});
