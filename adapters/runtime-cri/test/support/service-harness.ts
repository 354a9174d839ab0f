import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { OpenedEngine, Program, RuntimeHarness } from '@keelson/conformance';
import type { ContainerEngine, ContainerRuntime } from '@keelson/container-runtime';
import { createFakeRuntime, FakeWorld } from '@keelson/runtime-fake';
import { createProcessRuntime } from '@keelson/runtime-process';
import { createCriRuntime, serveCri } from '../../src/index.ts';
import { removeAll } from './cri-harness.ts';

/** An engine that is reached through the service and the client of this package. */
export interface OpenedService extends OpenedEngine {
  readonly folder: string;
  readonly behind: ContainerEngine;
}

/** The client promises what daemons can do; what this service's engine cannot, it cannot either. */
function narrowed(engine: ContainerEngine, behind: ContainerRuntime): ContainerEngine {
  const { updateContainerResources, ...rest } = engine.runtime;
  const { exec, attach, portForward } = engine.runtime.streaming;
  const capabilities = {
    ...behind.capabilities,
    // The protocol has none.
    pullProgress: false,
  };
  const runtime: ContainerRuntime = {
    ...rest,
    capabilities,
    streaming: {
      ...(capabilities.exec && exec && { exec: exec.bind(engine.runtime.streaming) }),
      ...(capabilities.attach && attach && { attach: attach.bind(engine.runtime.streaming) }),
      ...(capabilities.portForward && portForward && { portForward: portForward.bind(engine.runtime.streaming) }),
    },
    ...(capabilities.updateResources && updateContainerResources && { updateContainerResources }),
  };
  return { runtime, images: engine.images };
}

/** Serves an engine in a folder and connects a client to it. */
export async function throughService(folder: string, behind: ContainerEngine): Promise<OpenedService> {
  const service = await serveCri({ engine: behind, socketPath: join(folder, 'service.sock') });
  const client = await createCriRuntime({ endpoint: service.socketPath, nodeIp: '192.0.2.1' });
  const engine = narrowed(client, behind.runtime);
  const close = async () => {
    await client.runtime[Symbol.asyncDispose]();
    await service[Symbol.asyncDispose]();
    await behind.runtime[Symbol.asyncDispose]();
  };
  const runtime = { ...engine.runtime, [Symbol.asyncDispose]: close };
  const dispose = async () => {
    await removeAll(engine);
    await close();
    await rm(folder, { recursive: true, force: true });
  };
  return { engine: { ...engine, runtime }, behind, folder, dispose };
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
      reference === missingImage ? { error: { code: 'ImageNotFound', message: `no "${reference}"` } } : { sizeBytes: 1000 },
    images: [fakeImage],
  });
}

async function openFake(folder: string, world: FakeWorld): Promise<OpenedFake> {
  return { ...(await throughService(folder, createFakeRuntime(world))), world };
}

async function capabilitiesOf(open: () => Promise<OpenedService>) {
  const opened = await open();
  const { capabilities } = opened.engine.runtime;
  await opened.dispose();
  return capabilities;
}

export async function fakeServiceHarness(): Promise<RuntimeHarness<OpenedFake>> {
  const open = async () => openFake(await newFolder(), newWorld());
  return {
    name: 'cri service of the fake',
    capabilities: await capabilitiesOf(open),
    missingImage,
    pullableImage,
    open,
    reopen: async ({ engine, folder, world }) => {
      await engine.runtime[Symbol.asyncDispose]();
      return openFake(folder, world);
    },
    program: (intent) => {
      const words = intent.kind === 'exit' ? ['exit', String(intent.code), String(intent.afterMs ?? 0)] : [intent.kind];
      return { image: fakeImage, command: words };
    },
    scratch: ({ folder }) => mkdtemp(join(folder, 'scratch-')),
  };
}

const shell = (script: string): Program => ({ image: 'host', command: ['/bin/sh', '-c', script] });

async function openProcess(folder: string): Promise<OpenedService> {
  return throughService(folder, await createProcessRuntime({ stateDirectory: join(folder, 'state'), nodeIp: '192.0.2.1' }));
}

/** True also when the process is not there any more. */
function ignoresTerm(pid = 0): boolean {
  try {
    const mask = /^SigIgn:\s+([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return mask === undefined || (BigInt(`0x${mask}`) & (1n << 14n)) !== 0n;
  } catch {
    return true;
  }
}

export async function processServiceHarness(): Promise<RuntimeHarness<OpenedService>> {
  const open = async () => openProcess(await newFolder());
  const capabilities = await capabilitiesOf(open);
  return {
    name: 'cri service of processes',
    capabilities,
    concurrency: 4,
    missingImage,
    builtinImage: 'host',
    sharesHostNetwork: true,
    open,
    reopen: async ({ engine, folder }) => {
      await engine.runtime[Symbol.asyncDispose]();
      return openProcess(folder);
    },
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
