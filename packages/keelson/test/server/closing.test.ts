import { mkdtemp, rm } from 'node:fs/promises';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import { loadCredentials } from '../../src/tls/credentials.ts';

const path = '/api/v1/namespaces/default/configmaps';
const halfPost = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`;
const drainMs = 300;

function closed(socket: Socket): Promise<void> {
  socket.on('error', () => {});
  socket.resume();
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

async function directory(t: ExecutionContext): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'keelson-closing-'));
  t.teardown(() => rm(made, { recursive: true }));
  return made;
}

test('a plain server closes by its deadline although bodies, headers and first bytes are still to come', async (t) => {
  const plane = await createControlPlane({ controllers: false });
  const { port } = await plane.listen({ drainMs });
  const ends = [halfPost, 'GET / HTTP/1.1\r\nHo', ''].map(async (bytes) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    await closed(socket);
  });
  await new Promise((resolve) => setTimeout(resolve, 50));
  await plane.close();
  await Promise.all(ends);
  t.pass();
});

test('a TLS server closes by its deadline although handshakes, prefaces and bodies are still to come', async (t) => {
  const credentials = await loadCredentials(await directory(t), '127.0.0.1', Date.now());
  const plane = await createControlPlane({ controllers: false });
  const { port, url } = await plane.listen({ drainMs, credentials });
  const tls = { ca: credentials.authority, cert: credentials.admin.certificate, key: credentials.admin.key };
  const session = connectHttp2(url, tls);
  session.on('error', () => {});
  const stream = session.request(
    { ':method': 'POST', ':path': path, 'content-type': 'application/json' },
    { endStream: false },
  );
  stream.on('error', () => {});
  stream.write('{');
  const silent = connect(port, '127.0.0.1');
  const http1 = connectTls({ port, host: '127.0.0.1', ...tls }, () => http1.write(halfPost));
  const http2 = connectTls({ port, host: '127.0.0.1', ...tls, ALPNProtocols: ['h2'] });
  const ends = [silent, http1, http2].map(closed);
  await Promise.all([http1, http2].map((socket) => new Promise((resolve) => socket.once('secureConnect', resolve))));
  await new Promise<void>((resolve) => session.ping(() => resolve()));
  await plane.close();
  await Promise.all([
    ...ends,
    new Promise<void>((resolve) => (session.destroyed ? resolve() : session.once('close', resolve))),
  ]);
  t.pass();
});
