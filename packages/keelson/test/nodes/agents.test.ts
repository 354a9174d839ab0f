import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { createServer, request, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { systemClock } from '@keelson/core/runtime';
import { Namespace, Node, Pod } from '@keelson/kinds';
import test, { type ExecutionContext } from 'ava';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import type { AgentAccess } from '../../src/server/listen-options.ts';
import { type Credentials, loadCredentials } from '../../src/tls/credentials.ts';

const exec = '/api/v1/namespaces/default/pods/p/exec?command=cat&stdin=1';
const log = '/api/v1/namespaces/default/pods/p/log';

/** An agent that accepts clients of the authority, echoes the bytes of a tunnel, and reports the client. */
async function startAgent(t: ExecutionContext, { authority, server }: Credentials): Promise<number> {
  const agent: Server = createServer(
    { cert: server.certificate, key: server.key, ca: authority, requestCert: true, rejectUnauthorized: false },
    (incoming, response) => {
      const socket = incoming.socket as TLSSocket;
      if (!socket.authorized) return void response.writeHead(401).end('Unauthorized');
      const { CN, O } = socket.getPeerCertificate().subject as unknown as Record<string, string>;
      response.end(`${CN} of ${O} wants ${incoming.url}`);
    },
  );
  agent.on('upgrade', (_request, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
    socket.pipe(socket);
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => agent.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    agent.closeAllConnections();
    agent.close();
  });
  return (agent.address() as AddressInfo).port;
}

interface Setting {
  /** What the agent is reached with. */
  readonly agents?: (port: number, authority: string) => AgentAccess;
  readonly addresses?: readonly { readonly type: string; readonly address: string }[];
}

/** A server with TLS, and a pod on a node whose agent runs. */
async function startPlane(t: ExecutionContext, setting: Setting = {}) {
  const data = await mkdtemp(join(tmpdir(), 'keelson-agents-'));
  t.teardown(() => rm(data, { recursive: true }));
  const credentials = await loadCredentials(data, '127.0.0.1', systemClock.now());
  const agentPort = await startAgent(t, credentials);
  const plane = await createControlPlane({ controllers: false });
  t.teardown(() => plane.close());
  await plane
    .client(Namespace)
    .create({ metadata: { name: 'default' } } as Namespace)
    .catch(() => {});
  await plane.client(Node).create({
    metadata: { name: 'n1' },
    status: {
      addresses: [...(setting.addresses ?? [{ type: 'InternalIP', address: '127.0.0.1' }])],
      daemonEndpoints: { kubeletEndpoint: { Port: agentPort } },
    },
  } as Node);
  await plane.client(Pod).create({
    metadata: { name: 'p', namespace: 'default' },
    spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'x' }] },
  } as Pod);
  const agents = setting.agents?.(agentPort, credentials.authority);
  const { port } = await plane.listen({ credentials, ...(agents ? { agents } : {}) });
  const { admin, authority } = credentials;
  const tls = { host: '127.0.0.1', port, ca: authority, cert: admin.certificate, key: admin.key };
  const get = async (path: string): Promise<{ status: number | undefined; text: string }> => {
    const sent = request({ ...tls, path, agent: false });
    sent.end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of answer) text += String(chunk);
    return { status: answer.statusCode, text };
  };
  return { plane, tls, get, agentPort };
}

test('agents are called over TLS with a certificate of the server, and the tunnel runs over the TLS of the client', async (t) => {
  const { get, tls, plane } = await startPlane(t);
  t.deepEqual(await get(log), {
    status: 200,
    text: 'keelson-server of system:masters wants /containerLogs/default/p/c',
  });

  const sent = request({
    ...tls,
    path: exec,
    method: 'POST',
    agent: false,
    headers: { Connection: 'Upgrade', Upgrade: 'echo' },
  });
  sent.end();
  const [answer, socket] = (await once(sent, 'upgrade')) as [IncomingMessage, TLSSocket];
  t.is(answer.headers.upgrade, 'echo');
  socket.write('there and back');
  const [echo] = (await once(socket, 'data')) as [Buffer];
  t.is(String(echo), 'there and back');
  const ended = once(socket, 'close');
  socket.resume();
  await plane.close();
  await ended;
});

test('HTTP/2 clients can read logs', async (t) => {
  const { tls } = await startPlane(t);
  const { host, port, ...secrets } = tls;
  const session = connectHttp2(`https://${host}:${port}`, secrets);
  t.teardown(() => session.destroy());
  const stream = session.request({ ':path': log });
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  t.deepEqual([headers[':status'], text], [200, 'keelson-server of system:masters wants /containerLogs/default/p/c']);
});

test('over TLS, an Upgrade header is ignored where no other protocol is supported', async (t) => {
  const { tls } = await startPlane(t);
  const socket = connect(tls);
  let text = '';
  socket.on('data', (chunk) => {
    text += String(chunk);
  });
  await once(socket, 'secureConnect');
  socket.write('GET /version HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n');
  while (!text.includes('gitVersion')) await once(socket, 'data');
  socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await once(socket, 'close');
  t.deepEqual(text.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 200']);
});

test('with an authority the certificate of an agent is verified by name or address; logs may skip the verification', async (t) => {
  const data = await mkdtemp(join(tmpdir(), 'keelson-agents-'));
  t.teardown(() => rm(data, { recursive: true }));
  const { authority } = await loadCredentials(data, '127.0.0.1', systemClock.now());
  const { get } = await startPlane(t, { agents: () => ({ authority }) });
  const refused = await get(log);
  t.is(refused.status, 503);
  t.regex(refused.text, /the agent of node \\"n1\\" at 127\.0\.0\.1:\d+ cannot be reached: [^"]*certificate/);
  t.is((await get(`${log}?insecureSkipTLSVerifyBackend=true`)).status, 200);
  const good = await startPlane(t, { agents: (_port, own) => ({ authority: own }) });
  t.is((await good.get(log)).status, 200);
});

test('the error about an unreachable node contains its name and the addresses that were tried', async (t) => {
  const { get, plane } = await startPlane(t, { addresses: [{ type: 'Hostname', address: 'nowhere.invalid' }] });
  const lost = await get(log);
  t.is(lost.status, 503);
  t.true(lost.text.includes('node \\"n1\\" cannot be reached: nowhere.invalid does not resolve'), lost.text);
  t.is((await get('/api/v1/nodes/n1/proxy/healthz')).status, 503);
  await plane.client(Node).delete('n1');
  const gone = await get(log);
  t.deepEqual([gone.status, gone.text.includes('nodes \\"n1\\" not found')], [404, true]);
});

test('the node proxy rejects addresses of this machine, except those of an agent in this process', async (t) => {
  const path = '/api/v1/nodes/n1/proxy/healthz';
  const far = await startPlane(t);
  const refused = await far.get(path);
  t.is(refused.status, 503);
  t.true(refused.text.includes('127.0.0.1 means this machine'), refused.text);
  t.is((await far.get('/api/v1/nodes/n1:80/proxy/')).status, 503);

  const near = await startPlane(t, { agents: (port) => ({ local: new Map([['n1', port]]) }) });
  t.deepEqual(await near.get(path), { status: 200, text: 'keelson-server of system:masters wants /healthz' });
});
