import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstat, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Client, credentials, type ServiceError, status } from '@grpc/grpc-js';
import { isRuntimeError, RuntimeError } from '@keelson/container-runtime';
import { createFakeRuntime, FakeWorld } from '@keelson/runtime-fake';
import test, { type ExecutionContext } from 'ava';
import { Calls, type CriCall } from '../src/api/calls.ts';
import { createCriRuntime, serveCri } from '../src/index.ts';
import { grpcErrorOf } from '../src/service/handlers.ts';
import { fromAuth } from '../src/service/to-cri.ts';

const image = 'registry.test/base:1';

async function folderOf(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp('/tmp/keelson-cri-socket-');
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A service of a fake engine, and a plain gRPC client of it, as other tools use. */
async function serve(t: ExecutionContext) {
  const world = new FakeWorld({ images: [image] });
  const engine = createFakeRuntime(world);
  const socketPath = join(await folderOf(t), 'cri.sock');
  const service = await serveCri({ engine, socketPath });
  const client = new Client(`unix://${socketPath}`, credentials.createInsecure());
  t.teardown(async () => {
    client.close();
    await service[Symbol.asyncDispose]();
    await engine.runtime[Symbol.asyncDispose]();
  });
  const send = <Q, R>({ service: name, name: method, request, response }: CriCall<Q, R>, message: Q): Promise<R> =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        `/runtime.v1.${name}/${method}`,
        (value: Q) => request.encode(value),
        (bytes) => response.decode(bytes),
        message,
        (error, value) => (error === null ? resolve(value ?? response.decode(Buffer.alloc(0))) : reject(error)),
      );
    });
  return { world, engine, send, client, socketPath };
}

const metadata = { name: 'web', namespace: 'default', uid: 'u1', attempt: 0 };

test('a pod is run, read and removed by messages alone, and a prefix of an id is sufficient', async (t) => {
  const { engine, send } = await serve(t);
  const { podSandboxId = '' } = await send(Calls.runPodSandbox, { config: { metadata, labels: { app: 'web' } } });
  const config = { metadata: { name: 'main', attempt: 0 }, image: { image } };
  const { containerId = '' } = await send(Calls.createContainer, { podSandboxId, config });
  const short = containerId.slice(0, -1);
  await send(Calls.startContainer, { containerId: short });
  const { status: container } = await send(Calls.containerStatus, { containerId: short, verbose: false });
  t.like(container, { id: containerId, state: 1, image: { image } });
  const { containers = [] } = await send(Calls.listContainers, { filter: { podSandboxId, id: short } });
  t.deepEqual(
    containers.map(({ id }) => id),
    [containerId],
  );
  const { stats } = await send(Calls.containerStats, { containerId });
  t.is(stats?.attributes?.id, containerId);
  const { items = [] } = await send(Calls.listPodSandbox, {
    filter: { labelSelector: { app: 'web' }, state: { state: 0 } },
  });
  t.deepEqual(
    items.map(({ id }) => id),
    [podSandboxId],
  );
  await send(Calls.removePodSandbox, { podSandboxId });
  t.deepEqual(await engine.runtime.listContainers(), []);
});

test('unspecified namespaces are those of the pod', async (t) => {
  const { engine, send } = await serve(t);
  const { podSandboxId = '' } = await send(Calls.runPodSandbox, { config: { metadata } });
  const { namespaces } = await engine.runtime.podSandboxStatus(podSandboxId);
  t.deepEqual(namespaces, { network: 'pod', pid: 'pod', ipc: 'pod' });
});

test('a group without a user is rejected, and masked and read-only paths are passed to the runtime', async (t) => {
  const { world, send } = await serve(t);
  const alone = { runAsGroup: { value: 5 } };
  const { podSandboxId = '' } = await send(Calls.runPodSandbox, { config: { metadata } });
  const create = (name: string, securityContext: object) =>
    send(Calls.createContainer, {
      podSandboxId,
      config: { metadata: { name, attempt: 0 }, image: { image }, linux: { securityContext } },
    });
  for (const request of [
    create('refused', alone),
    send(Calls.runPodSandbox, { config: { metadata: { ...metadata, attempt: 1 }, linux: { securityContext: alone } } }),
  ]) {
    const error = await t.throwsAsync<ServiceError>(request);
    t.is(error.code, status.INVALID_ARGUMENT);
    t.is(error.details, 'user group "5" is specified without user');
  }
  const relative = await t.throwsAsync<ServiceError>(create('relative', { maskedPaths: ['proc/keys'] }));
  t.is(relative.code, status.INVALID_ARGUMENT);
  const paths = { maskedPaths: ['/proc/keys'], readonlyPaths: ['/proc/sys', '/proc/bus'] };
  const { containerId = '' } = await create('paths', { ...paths, ...alone, runAsUsername: 'app' });
  t.like(world.containers.get(containerId)?.config.securityContext, { ...paths, runAsGroup: 5, runAsUsername: 'app' });
  const { containerId: plain = '' } = await create('plain', { runAsUser: { value: 0 } });
  t.deepEqual(Object.keys(world.containers.get(plain)?.config.securityContext ?? {}), ['runAsUser']);
});

test('the client sets the user of the image, or root, for a group without a user', async (t) => {
  const { world, engine, socketPath } = await serve(t);
  const client = await createCriRuntime({ endpoint: socketPath });
  t.teardown(() => client.runtime[Symbol.asyncDispose]());
  const sandboxId = await engine.runtime.runPodSandbox({ metadata });
  const config = { metadata: { name: 'main', attempt: 0 }, image, securityContext: { runAsGroup: 5 } };
  const id = await client.runtime.createContainer(sandboxId, config);
  t.like(world.containers.get(id)?.config.securityContext, { runAsUser: 0, runAsGroup: 5 });
});

test('an ambiguous prefix of an id is rejected', async (t) => {
  const { send } = await serve(t);
  const { podSandboxId = '' } = await send(Calls.runPodSandbox, { config: { metadata } });
  const ids: string[] = [];
  for (const name of ['a', 'b']) {
    const config = { metadata: { name, attempt: 0 }, image: { image } };
    ids.push((await send(Calls.createContainer, { podSandboxId, config })).containerId ?? '');
  }
  const [one = '', other = ''] = ids;
  let common = 0;
  while (one[common] === other[common]) common += 1;
  t.true(common > 0, 'ids of the fake have a common prefix');
  const error = await t.throwsAsync<ServiceError>(send(Calls.startContainer, { containerId: one.slice(0, common) }));
  t.is(error.code, status.INVALID_ARGUMENT);
});

test('errors have gRPC codes: missing objects, invalid requests, and streams that the runtime does not support', async (t) => {
  const { send, client } = await serve(t);
  const codeOf = async (request: Promise<unknown>) => (await t.throwsAsync<ServiceError>(request)).code;
  t.is(await codeOf(send(Calls.containerStatus, { containerId: 'none' })), status.NOT_FOUND);
  t.is(await codeOf(send(Calls.runPodSandbox, { config: {} })), status.INVALID_ARGUMENT);
  t.is(
    await codeOf(send(Calls.runPodSandbox, { config: { metadata }, runtimeHandler: 'other' })),
    status.INVALID_ARGUMENT,
  );
  await send(Calls.runPodSandbox, { config: { metadata } });
  t.is(await codeOf(send(Calls.runPodSandbox, { config: { metadata } })), status.ALREADY_EXISTS);
  const streams = await t.throwsAsync<ServiceError>(send(Calls.exec, { containerId: 'none', cmd: ['ls'] }));
  t.is(streams.code, status.UNIMPLEMENTED);
  t.regex(streams.details, /the runtime fake does not support exec/);
  const garbage = new Promise((resolve, reject) => {
    const send = (bytes: Buffer) => bytes;
    client.makeUnaryRequest(
      '/runtime.v1.RuntimeService/RunPodSandbox',
      send,
      send,
      Buffer.from([10, 200]),
      (error, value) => (error === null ? resolve(value) : reject(error)),
    );
  });
  t.is(await codeOf(garbage), status.INVALID_ARGUMENT);
});

test('every error code of the contract has a gRPC code and is transmitted itself', (t) => {
  const { code, details, metadata: trailer } = grpcErrorOf(new RuntimeError('StartFailed', 'no such program'));
  t.deepEqual([code, details, trailer.get('keelson-error-code')], [status.UNKNOWN, 'no such program', ['StartFailed']]);
  t.is(grpcErrorOf(new Error('x')).code, status.INTERNAL);
  t.is(grpcErrorOf(new RuntimeError('InvalidState', 'x')).code, status.FAILED_PRECONDITION);
});

test('credentials of a pull are read from separate fields or from one; without credentials there are none', (t) => {
  const auth = Buffer.from('me:secret:too').toString('base64');
  t.deepEqual(fromAuth({ auth, serverAddress: 'r.test' }), {
    username: 'me',
    password: 'secret:too',
    serverAddress: 'r.test',
  });
  t.deepEqual(fromAuth({ username: 'me', password: 'x', registryToken: 't' }), {
    username: 'me',
    password: 'x',
    registryToken: 't',
  });
  t.is(fromAuth({ serverAddress: 'r.test' }), undefined);
});

test('an image is pulled, listed, and removed', async (t) => {
  const { send } = await serve(t);
  const { imageRef } = await send(Calls.pullImage, { image: { image: 'registry.test/app:1' } });
  t.truthy(imageRef);
  const { images = [] } = await send(Calls.listImages, { filter: { image: { image: 'registry.test/app:1' } } });
  t.deepEqual(
    images.map(({ id }) => id),
    [imageRef],
  );
  await send(Calls.removeImage, { image: { image: 'registry.test/app:1' } });
  t.deepEqual(await send(Calls.imageStatus, { image: { image: 'registry.test/app:1' } }), {});
  const { imageFilesystems = [] } = await send(Calls.imageFsInfo, {});
  t.true(imageFilesystems.length > 0);
});

test('the socket is accessible to its owner alone and removed with the service, with nothing left in its folder', async (t) => {
  const folder = join(await folderOf(t), 'made', 'for', 'it');
  const socketPath = join(folder, 'cri.sock');
  const engine = createFakeRuntime(new FakeWorld());
  const service = await serveCri({ engine, socketPath });
  t.is((await lstat(socketPath)).mode & 0o777, 0o600);
  t.deepEqual(await readdir(folder), ['cri.sock']);
  await Promise.all([service[Symbol.asyncDispose](), service[Symbol.asyncDispose]()]);
  t.deepEqual(await readdir(folder), []);
});

test('a socket of a dead process is replaced', async (t) => {
  const socketPath = join(await folderOf(t), 'cri.sock');
  const script = `require('node:net').createServer().listen(${JSON.stringify(socketPath)}, () => console.log('listening'))`;
  const other = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => other.kill('SIGKILL'));
  await once(other.stdout, 'data');
  other.kill('SIGKILL');
  await once(other, 'close');
  t.true((await lstat(socketPath)).isSocket());
  const service = await serveCri({ engine: createFakeRuntime(new FakeWorld()), socketPath });
  await service[Symbol.asyncDispose]();
});

test('a socket at which a process listens, and a file that is not a socket, are not replaced', async (t) => {
  const folder = await folderOf(t);
  const socketPath = join(folder, 'cri.sock');
  const other = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => other.listen(socketPath, resolve));
  const engine = createFakeRuntime(new FakeWorld());
  const taken = await t.throwsAsync(serveCri({ engine, socketPath }));
  t.true(isRuntimeError(taken, 'AlreadyExists'));
  t.regex(taken?.message ?? '', /another process already listens/);
  t.true(other.listening && (await lstat(socketPath)).isSocket());
  await new Promise((resolve) => other.close(resolve));
  await writeFile(socketPath, 'words');
  await t.throwsAsync(serveCri({ engine, socketPath }), { message: /is not a socket/ });
  t.deepEqual(await readdir(folder), ['cri.sock']);
});
