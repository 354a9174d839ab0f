import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { OpenedEngine, Program, RuntimeHarness } from '@keelson/conformance';
import type { ContainerEngine } from '@keelson/container-runtime';
import { createFakeRuntime, FakeWorld } from '@keelson/runtime-fake';
import { createProcessRuntime } from '@keelson/runtime-process';
import { type Reusable, ReusePool } from '@keelson/test-support';
import { type CriRuntimeOptions, createCriRuntime, type PinnedTls, serveCri, serveCriAtPort } from '../../src/index.ts';
import { removeAll } from './cri-harness.ts';

/** An engine that is reached through the service and the client of this package. */
export interface OpenedService extends OpenedEngine, Reusable {
  readonly folder: string;
  readonly behind: ContainerEngine;
}

/** How an engine is served in a folder, and the options of its client. */
export type Serve = (
  folder: string,
  behind: ContainerEngine,
) => Promise<AsyncDisposable & { readonly client: CriRuntimeOptions }>;

export const atSocket: Serve = async (folder, engine) => {
  const service = await serveCri({ engine, socketPath: join(folder, 'service.sock') });
  return { client: { endpoint: service.socketPath }, [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() };
};

/** Both ends have the same pair. */
export function atPort(tls: PinnedTls): Serve {
  return async (_, engine) => {
    const service = await serveCriAtPort({ engine, host: '127.0.0.1', port: 0, tls });
    return { client: { endpoint: service.endpoint, tls }, [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() };
  };
}

/** Serves an engine in a folder and connects a client to it. */
export async function throughService(
  folder: string,
  behind: ContainerEngine,
  serve = atSocket,
): Promise<OpenedService> {
  const service = await serve(folder, behind);
  // A hundred concurrent services in one process may be slow, and a daemon without a response counts as
  // unavailable.
  const engine = await createCriRuntime({ ...service.client, nodeIp: '192.0.2.1', probeTimeoutMs: 60_000 });
  const close = async () => {
    await engine.runtime[Symbol.asyncDispose]();
    await service[Symbol.asyncDispose]();
    await behind.runtime[Symbol.asyncDispose]();
  };
  const runtime = { ...engine.runtime, [Symbol.asyncDispose]: close };
  const dispose = async () => {
    await removeAll(engine);
    await close();
    await rm(folder, { recursive: true, force: true });
  };
  return { engine: { ...engine, runtime }, behind, folder, empty: () => removeAll(engine), dispose };
}

const newFolder = () => mkdtemp('/tmp/keelson-cri-service-');

const missingImage = 'registry.test/missing:1';
const pullableImage = 'registry.test/app:1';
const fakeImage = 'registry.test/base:1';

interface OpenedFake extends OpenedService {
  readonly world: FakeWorld;
}

/** The command of a container is its script. */
function newWorld(): FakeWorld {
  return new FakeWorld({
    script: ({ config }) => {
      const [word, code, afterMs] = config.command ?? [];
      if (word === 'exit') return { exitCode: Number(code), exitAfterMs: Number(afterMs) };
      if (word === 'stubborn') return { stopAfterMs: 'never' };
      return word === 'cannotStart' ? { startError: 'no such program' } : {};
    },
    pull: (reference) =>
      reference === missingImage
        ? { error: { code: 'ImageNotFound', message: `no "${reference}"` } }
        : { sizeBytes: 1000 },
    images: [fakeImage],
  });
}

async function openFake(folder: string, world: FakeWorld, serve: Serve): Promise<OpenedFake> {
  return { ...(await throughService(folder, createFakeRuntime(world), serve)), world };
}

async function capabilitiesOf(open: () => Promise<OpenedService>) {
  const opened = await open();
  const { capabilities } = opened.engine.runtime;
  await opened.dispose();
  return capabilities;
}

export async function fakeServiceHarness(
  name = 'cri service of the fake',
  serve = atSocket,
): Promise<RuntimeHarness<OpenedFake>> {
  const open = async () => openFake(await newFolder(), newWorld(), serve);
  return {
    name,
    capabilities: await capabilitiesOf(open),
    missingImage,
    pullableImage,
    open,
    reopen: async ({ engine, folder, world }) => {
      await engine.runtime[Symbol.asyncDispose]();
      return openFake(folder, world, serve);
    },
    program: (intent) => {
      const words = intent.kind === 'exit' ? ['exit', String(intent.code), String(intent.afterMs ?? 0)] : [intent.kind];
      return { image: fakeImage, command: words };
    },
    scratch: ({ folder }) => mkdtemp(join(folder, 'scratch-')),
  };
}

const shell = (script: string): Program => ({ image: 'host', command: ['/bin/sh', '-c', script] });

async function openProcess(folder: string, serve: Serve): Promise<OpenedService> {
  const behind = await createProcessRuntime({ stateDirectory: join(folder, 'state'), nodeIp: '192.0.2.1' });
  return throughService(folder, behind, serve);
}

/** True also when the process has ended. */
function ignoresTerm(pid = 0): boolean {
  try {
    const mask = /^SigIgn:\s+([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return mask === undefined || (BigInt(`0x${mask}`) & (1n << 14n)) !== 0n;
  } catch {
    return true;
  }
}

/** Services are reused after all pods were removed; disposing of the harness closes them. */
export async function processServiceHarness(
  name = 'cri service of processes',
  serve = atSocket,
): Promise<RuntimeHarness<OpenedService> & AsyncDisposable> {
  const pool = new ReusePool(async () => openProcess(await newFolder(), serve));
  const capabilities = await capabilitiesOf(() => pool.open());
  return {
    name,
    capabilities,
    concurrency: 4,
    // The runtime behind the service runs 30 pods at once in its own suite.
    ...(process.env['KEELSON_TEST_FULL'] !== '1' && { loadPods: 9 }),
    missingImage,
    builtinImage: 'host',
    sharesHostNetwork: true,
    open: () => pool.open(),
    reopen: async ({ engine, folder }) => {
      await engine.runtime[Symbol.asyncDispose]();
      return pool.lend(await openProcess(folder, serve));
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
    program: (intent) => {
      if (intent.kind === 'run') return { image: 'host', command: ['sleep', '100000'] };
      if (intent.kind === 'stubborn') return shell('trap "" TERM; while :; do sleep 100000; done');
      if (intent.kind === 'cannotStart') return { image: 'host', command: ['/no/such/program'] };
      return shell(`sleep ${(intent.afterMs ?? 0) / 1000}; exit ${intent.code}`);
    },
    settled: async ({ engine }, id, intent) => {
      if (intent.kind !== 'stubborn') return;
      const { pid } = await engine.runtime.containerStatus(id);
      while (!ignoresTerm(pid)) await new Promise((resolve) => setTimeout(resolve, 5));
    },
    shell,
    printf: (...args) => ({ image: 'host', command: ['printf'], args }),
    scratch: ({ folder }) => mkdtemp(join(folder, 'scratch-')),
    ...(capabilities.users && { otherUser: { uid: 65534, gid: 65534 } }),
  };
}
