import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { OpenedEngine, Program, RuntimeHarness } from '@keelson/conformance';
import { decorateEngine, type RuntimeCapabilities } from '@keelson/container-runtime';
import { processesWith, type Reusable, ReusePool } from '@keelson/test-support';
import { createProcessRuntime, type ProcessRuntimeOptions } from '../../src/index.ts';

export interface OpenedProcess extends OpenedEngine, Reusable {
  readonly folder: string;
  readonly options: ProcessRuntimeOptions;
}

const builtinImage = 'host';

export const shell = (script: string): Program => ({ image: builtinImage, command: ['/bin/sh', '-c', script] });

/** True also when the process has ended. */
function ignoresTerm(pid = 0): boolean {
  try {
    const mask = /^SigIgn:\s+([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return mask === undefined || (BigInt(`0x${mask}`) & (1n << 14n)) !== 0n;
  } catch {
    return true;
  }
}

/** The log keeper of an open runtime runs until the runtime is closed. */
const isKeeper = (process: string) => process.includes('log-keeper.js');

/**
 * Waits until no process has one of these texts in its command line or environment.
 *
 * @throws Error with those that remain
 */
async function nothingLeft(texts: readonly string[], except = (_process: string) => false): Promise<void> {
  const deadline = performance.now() + 30_000;
  for (;;) {
    const left = processesWith(texts, { environment: true }).filter((process) => !except(process));
    if (left.length === 0) return;
    if (performance.now() > deadline) throw new Error(`processes are left: ${left.join('; ')}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export async function openProcess(
  options: Partial<ProcessRuntimeOptions> = {},
  folder?: string,
): Promise<OpenedProcess> {
  const place = folder ?? (await mkdtemp('/tmp/keelson-process-'));
  const all = { stateDirectory: join(place, 'state'), nodeIp: '192.0.2.1', ...options };
  const ids: string[] = [];
  const engine = decorateEngine(await createProcessRuntime(all), async (call, given, run) => {
    const result = await run(given);
    if (call === 'createContainer') ids.push(String(result));
    return result;
  });
  const { runtime, images } = engine;
  const removeAll = async () => {
    for (const { id } of await runtime.listContainers()) ids.push(id);
    for (const { id } of await runtime.listPodSandboxes()) await runtime.removePodSandbox(id);
  };
  const noFilesLeft = () => {
    const left = ['containers', 'run', 'sandboxes'].flatMap((name) => readdirSync(join(place, 'state', name)));
    if (left.length > 0) throw new Error(`files are left: ${left.join(', ')}`);
  };
  const textsOf = (containers: readonly string[]) => [place, ...containers.map((id) => `KEELSON_CONTAINER_ID=${id}`)];
  return {
    engine,
    folder: place,
    options: all,
    empty: async () => {
      await removeAll();
      const names = (await images.listImages()).flatMap(({ repoTags }) => repoTags);
      for (const name of names) if (name !== builtinImage) await images.removeImage(name);
      await nothingLeft(textsOf(ids.splice(0)), isKeeper);
      noFilesLeft();
    },
    dispose: async () => {
      await removeAll();
      await runtime[Symbol.asyncDispose]();
      await nothingLeft(textsOf(ids));
      noFilesLeft();
      await rm(place, { recursive: true, force: true });
    },
  };
}

/**
 * `capabilities` are those of the runtime on this machine; `extra` changes the harness. Engines are reused after all
 * pods were removed; disposing of the harness closes them.
 */
export function processHarness(
  name: string,
  capabilities: RuntimeCapabilities,
  options: Partial<ProcessRuntimeOptions> = {},
  extra: Partial<RuntimeHarness<OpenedProcess>> = {},
): RuntimeHarness<OpenedProcess> & AsyncDisposable {
  const pool = new ReusePool(() => openProcess(options));
  return {
    name,
    capabilities,
    concurrency: 4,
    missingImage: 'registry.test/missing:1',
    builtinImage,
    sharesHostNetwork: true,
    open: () => pool.open(),
    reopen: async (opened) => {
      await opened.engine.runtime[Symbol.asyncDispose]();
      return pool.lend(await openProcess(opened.options, opened.folder));
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
    program: (intent) => {
      if (intent.kind === 'run') return { image: builtinImage, command: ['sleep', '100000'] };
      if (intent.kind === 'stubborn') return shell('trap "" TERM; while :; do sleep 100000; done');
      if (intent.kind === 'cannotStart') return { image: builtinImage, command: ['/no/such/program'] };
      return shell(`sleep ${(intent.afterMs ?? 0) / 1000}; exit ${intent.code}`);
    },
    settled: async (opened, id, intent) => {
      if (intent.kind !== 'stubborn') return;
      const { pid } = await opened.engine.runtime.containerStatus(id);
      while (!ignoresTerm(pid)) await new Promise((resolve) => setTimeout(resolve, 5));
    },
    shell,
    printf: (...args) => ({ image: builtinImage, command: ['printf'], args }),
    scratch: (opened) => mkdtemp(join(opened.folder, 'scratch-')),
    ...(capabilities.users && { otherUser: { uid: 65534, gid: 65534 } }),
    ...extra,
  };
}
