import { Agent, createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { systemClock } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import { JsonRequestError, requestJson } from '../../src/index.ts';

async function serve(t: ExecutionContext, listener: RequestListener): Promise<{ server: Server; port: number }> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, port: (server.address() as AddressInfo).port };
}

const common = { timeoutMs: 60_000, clock: systemClock };

test('a request is retried when the server has closed its keep-alive connection', async (t) => {
  const connections = new Map<Socket, number>();
  const { port } = await serve(t, (request, response) => {
    const requests = (connections.get(request.socket) ?? 0) + 1;
    connections.set(request.socket, requests);
    if (requests > 1) request.socket.destroy();
    else response.end(`{"connection":${connections.size}}`);
  });
  const agent = new Agent({ keepAlive: true });
  t.teardown(() => agent.destroy());
  const request = { url: `http://127.0.0.1:${port}/`, agent, body: {}, ...common };
  t.deepEqual(await requestJson(request), { connection: 1 });
  t.deepEqual(await requestJson(request), { connection: 2 });
});

test('a request whose new connection fails is not retried', async (t) => {
  let requests = 0;
  const { port } = await serve(t, (request) => {
    requests += 1;
    request.socket.destroy();
  });
  await t.throwsAsync(requestJson({ url: `http://127.0.0.1:${port}/`, body: {}, ...common }), {
    instanceOf: JsonRequestError,
    message: `http://127.0.0.1:${port}/: socket hang up`,
  });
  t.is(requests, 1);
});

test('a request can be sent to another address than that of its URL, with the host of the URL', async (t) => {
  const { port } = await serve(t, (request, response) => {
    response.end(JSON.stringify({ host: request.headers.host, url: request.url }));
  });
  const connectTo = { host: '127.0.0.1', port };
  t.deepEqual(await requestJson({ url: 'http://hook.default.svc:8080/check', connectTo, ...common }), {
    host: 'hook.default.svc:8080',
    url: '/check',
  });
});

test('a response that exceeds the size limit is an error', async (t) => {
  const { port } = await serve(t, (_request, response) => void response.end(JSON.stringify('x'.repeat(2000))));
  await t.throwsAsync(requestJson({ url: `http://127.0.0.1:${port}/`, answerBytes: 1000, ...common }), {
    message: `http://127.0.0.1:${port}/: the answer is longer than 1000 bytes`,
  });
});
