import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { request } from 'node:https';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectTls, createServer, type TLSSocket } from 'node:tls';
import { isRuntimeError, type PullProgress } from '@keelson/container-runtime';
import { FakeClock } from '@keelson/core/runtime';
import { createFakeRuntime, type FakePull, FakeWorld } from '@keelson/runtime-fake';
import test, { type ExecutionContext } from 'ava';
import { createCriRuntime, type PinnedTls, serveCriAtPort } from '../src/index.ts';
import { RejectionLog } from '../src/service/tls-listener.ts';
import { lackingForPairs, newPair } from './support/pair.ts';

const over = lackingForPairs.length > 0 ? test.skip : test;

function recordingLogger() {
  const lines: { readonly message: string; readonly fields: Readonly<Record<string, unknown>> }[] = [];
  const line = (message: string, fields: Readonly<Record<string, unknown>> = {}) =>
    void lines.push({ message, fields });
  const logger = { debug: () => {}, info: line, warn: line, error: line, child: () => logger };
  return { lines, logger };
}

async function serve(t: ExecutionContext) {
  const tls = newPair();
  let begun = () => {};
  const slow = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const pull = (reference: string): FakePull => {
    if (reference.endsWith('/missing:1')) return { error: { code: 'ImageNotFound', message: 'there is none' } };
    if (!reference.endsWith('/slow:1')) return { sizeBytes: 1000 };
    begun();
    return { delayMs: 5000 };
  };
  const engine = createFakeRuntime(new FakeWorld({ images: ['registry.test/base:1'], pull }));
  const { lines, logger } = recordingLogger();
  const service = await serveCriAtPort({ engine, host: '127.0.0.1', port: 0, tls, logger });
  t.teardown(async () => {
    await service[Symbol.asyncDispose]();
    await engine.runtime[Symbol.asyncDispose]();
  });
  const port = Number(new URL(service.endpoint.replace('tcp:', 'http:')).port);
  return { tls, engine, service, port, lines, slow };
}

async function clientOf(t: ExecutionContext, endpoint: string, tls?: PinnedTls, probeTimeoutMs = 30_000) {
  const client = await createCriRuntime({ endpoint, probeTimeoutMs, ...(tls && { tls }) });
  t.teardown(() => client.runtime[Symbol.asyncDispose]());
  return client.runtime;
}

over('a client with the pinned key is served, with the capabilities of the engine', async (t) => {
  const { tls, engine, service } = await serve(t);
  const runtime = await clientOf(t, service.endpoint, tls);
  t.is(runtime.name, engine.runtime.name);
  t.deepEqual(runtime.capabilities, engine.runtime.capabilities);
  t.deepEqual(await runtime.listPodSandboxes(), []);
});

over('a client without the pinned certificate is rejected with the reason, in calls and in streams', async (t) => {
  const { tls, port, lines } = await serve(t);
  const other = newPair();
  for (const [own, shown] of [
    [{}, 'no certificate'],
    [{ key: other.key, cert: other.certificate }, 'another certificate'],
  ] as const) {
    const sentence = `the client certificate is not the pinned certificate: the client presented ${shown}`;
    const session = connectHttp2(`https://127.0.0.1:${port}`, {
      ...own,
      ca: tls.peer,
      checkServerIdentity: () => undefined,
    });
    const call = session.request({ ':method': 'POST', ':path': '/runtime.v1.RuntimeService/ListContainers' });
    const [headers] = await once(call, 'response');
    t.is(headers['grpc-status'], '16');
    t.is(headers['grpc-message'], sentence);
    session.destroy();
    const answer = await new Promise<string>((resolve, reject) => {
      const upgrade = request(`https://127.0.0.1:${port}/cri/exec/x`, {
        ...own,
        rejectUnauthorized: false,
        agent: false,
      });
      upgrade.once('response', (response) => resolve(text(response)));
      upgrade.once('error', reject);
      upgrade.end();
    });
    t.is(answer, `${sentence}\n`);
  }
  t.is(lines.length, 1, 'a client without a certificate does not fill the log');
  t.regex(String(lines[0]?.fields['reason']), /no certificate/);
});

over('the certificate without its key, plain text and older versions of TLS are rejected', async (t) => {
  const { tls, service, port, lines } = await serve(t);
  const { key } = newPair();
  t.throws(() => connectTls({ port, host: '127.0.0.1', key, cert: tls.certificate }), {
    message: /key values mismatch/,
  });
  const ended = (socket: ReturnType<typeof connect>) =>
    new Promise<string>((resolve) => {
      socket.on('error', () => {});
      text(socket).then(resolve, () => resolve(''));
    });
  const plain = connect(port, '127.0.0.1', () => plain.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'));
  t.notRegex(await ended(plain), /HTTP/);
  t.regex(String(lines[0]?.fields['reason']), /the TLS handshake failed/);
  const old = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, maxVersion: 'TLSv1.2' });
  t.is(await ended(old), '');
  const runtime = await clientOf(t, service.endpoint, undefined, 200);
  t.true(isRuntimeError(await t.throwsAsync(runtime.listContainers()), 'Unavailable'));
});

over('the client rejects a server with another certificate, and sends it nothing', async (t) => {
  const tls = newPair();
  const received: Buffer[] = [];
  const other = newPair();
  const otherServer = createServer(
    { key: other.key, cert: other.certificate, ALPNProtocols: ['h2'] },
    (socket: TLSSocket) => {
      socket.on('data', (data) => received.push(data));
      socket.on('error', () => {});
    },
  );
  await new Promise<void>((resolve) => otherServer.listen(0, '127.0.0.1', resolve));
  t.teardown(() => otherServer.close());
  const address = otherServer.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const runtime = await clientOf(t, `tcp://127.0.0.1:${port}`, tls, 200);
  const refused = await t.throwsAsync(runtime.listContainers());
  t.true(isRuntimeError(refused, 'Unavailable'), String(refused));
  t.regex(String(refused?.message), /certificate/);
  t.deepEqual(received, []);
});

over('a pull reports its progress and its error code, and ends when the client aborts it', async (t) => {
  const { tls, service, slow } = await serve(t);
  // A probe that times out finds no progress of pulls.
  const { images, runtime } = await createCriRuntime({ endpoint: service.endpoint, tls, probeTimeoutMs: 30_000 });
  t.teardown(() => runtime[Symbol.asyncDispose]());
  const steps: PullProgress[] = [];
  const onProgress = (step: PullProgress) => void steps.push(step);
  const id = await images.pullImage('registry.test/app:1', { onProgress });
  t.is((await images.imageStatus('registry.test/app:1'))?.id, id);
  t.deepEqual(steps, [{ receivedBytes: 1000, totalBytes: 1000 }]);
  const missing = await t.throwsAsync(images.pullImage('registry.test/missing:1', { onProgress }));
  t.true(isRuntimeError(missing, 'ImageNotFound'), String(missing));
  const controller = new AbortController();
  const pull = images.pullImage('registry.test/slow:1', { onProgress }, { signal: controller.signal });
  await slow;
  controller.abort();
  t.true(isRuntimeError(await t.throwsAsync(pull), 'Aborted'));
  const never = images.pullImage('registry.test/slow:1', { onProgress }, { signal: AbortSignal.abort() });
  t.true(isRuntimeError(await t.throwsAsync(never), 'Aborted'));
});

over('a port in use is rejected', async (t) => {
  const { tls, engine, port } = await serve(t);
  const error = await t.throwsAsync(serveCriAtPort({ engine, host: '127.0.0.1', port, tls }));
  t.true(isRuntimeError(error, 'AlreadyExists'));
  t.is(error?.message, `another process already listens at 127.0.0.1:${port}`);
});

over('unauthenticated connections are closed, and other clients are served during and after that', async (t) => {
  const { port, service, tls } = await serve(t);
  const closed = Array.from({ length: 20 }, () => {
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] });
    socket.on('error', () => {});
    socket.resume();
    // From the start: a connection may end while the others are served.
    return once(socket, 'close');
  });
  const meanwhile = await clientOf(t, service.endpoint, tls);
  t.deepEqual(await meanwhile.listContainers(), []);
  await Promise.all(closed);
  const afterwards = await clientOf(t, service.endpoint, tls);
  t.deepEqual(await afterwards.listContainers(), []);
});

test('rejected connections are logged once a minute, with their number', (t) => {
  const clock = new FakeClock();
  const { lines, logger } = recordingLogger();
  const refusals = new RejectionLog(logger, clock);
  for (let count = 0; count < 5; count += 1) refusals.add(`r${count}`);
  t.deepEqual(lines, [{ message: 'connection refused', fields: { reason: 'r0' } }]);
  clock.advance(60_000);
  refusals.add('r5');
  t.deepEqual(lines[1]?.fields, { reason: 'r5', othersSinceLastLine: 4 });
});
