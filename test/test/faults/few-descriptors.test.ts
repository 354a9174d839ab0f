import { Agent, request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { directoryFor } from '../../src/faults/fault-run.ts';
import { type KeelsonProcess, startKeelson } from '../../src/keelson-process.ts';
import { readKubeconfig } from '../../src/read-kubeconfig.ts';

const descriptors = 300;
const hostile = 600;

async function caller(server: KeelsonProcess) {
  const { authority, certificate, key } = await readKubeconfig(server.kubeconfig);
  const tls = { ca: authority, cert: certificate, key };
  const get = (path: string, agent?: Agent) =>
    new Promise<number>((resolve, reject) => {
      const sent = request(`${server.url}${path}`, { ...tls, agent: agent ?? false }, (answer) => {
        answer.resume();
        answer.once('end', () => resolve(answer.statusCode ?? 0));
      });
      sent.once('error', reject);
      sent.end();
    });
  return { tls, get };
}

/** Connections that are opened continuously and not used. */
function flood(t: ExecutionContext, open: () => Socket): Promise<unknown> {
  return Promise.all(
    Array.from({ length: hostile }, () => {
      const socket = open();
      t.teardown(() => socket.destroy());
      socket.on('error', () => {});
      return new Promise<void>((resolve) => socket.once('connect', () => resolve()).once('close', () => resolve()));
    }),
  );
}

for (const [what, protocols] of [
  ['silent connections', undefined],
  ['HTTP/1.1 connections over TLS', ['http/1.1']],
  ['HTTP/2 connections', ['h2']],
] as const) {
  test.serial(
    `${hostile} unused ${what} do not block other clients of a server with ${descriptors} descriptors`,
    async (t) => {
      const args = ['--storage', 'memory:', '--log-level', 'error'];
      const server = await startKeelson(await directoryFor(t), args, 'serve', { descriptors });
      t.teardown(() => server.kill());
      const { tls, get } = await caller(server);
      const kept = new Agent({ ...tls, keepAlive: true, maxSockets: 1 });
      t.teardown(() => kept.destroy());
      const watch = request(`${server.url}/api/v1/namespaces?watch=1`, { ...tls, agent: false });
      let watchEnded = false;
      const watching = new Promise<void>((resolve) =>
        watch.once('response', (answer) => {
          answer.resume();
          answer.once('close', () => {
            watchEnded = true;
          });
          resolve();
        }),
      );
      watch.on('error', () => {});
      watch.end();
      await watching;
      t.teardown(() => watch.destroy());
      const port = Number(new URL(server.url).port);
      const open = () =>
        protocols === undefined
          ? connect(port, '127.0.0.1')
          : connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: [...protocols] });
      const flooding = flood(t, open);
      for (let i = 0; i < 5; i++) {
        t.is(await get('/readyz'), 200, 'a health check on a connection of its own');
        t.is(await get('/api/v1/namespaces/default', kept), 200, 'a client that keeps its connection');
      }
      await flooding;
      t.is(await get('/readyz'), 200);
      t.is(await get('/api/v1/namespaces'), 200);
      t.false(watchEnded, 'a watch continues');
    },
  );
}
