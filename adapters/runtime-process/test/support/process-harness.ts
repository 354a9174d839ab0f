import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { OpenedEngine, Program, RuntimeHarness } from '@keelson/conformance';
import { decorateEngine, type RuntimeCapabilities } from '@keelson/container-runtime';
import { createProcessRuntime, type ProcessRuntimeOptions } from '../../src/index.ts';

export interface OpenedProcess extends OpenedEngine {
  readonly folder: string;
  readonly options: ProcessRuntimeOptions;
}

export const shell = (script: string): Program => ({ image: 'host', command: ['/bin/sh', '-c', script] });

/** Processes of the machine that have this text in their command line or environment. */
export function processesWith(text: string): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return [];
    try {
      const commandLine = readFileSync(`/proc/${pid}/cmdline`, 'latin1');
      const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
      return `${commandLine}\0${environment}`.includes(text)
        ? [`${pid}: ${commandLine.replaceAll('\0', ' ').slice(0, 200)}`]
        : [];
    } catch {
      return [];
    }
  });
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

/** Waits until no process is left that has one of these texts; throws with what is. */
export async function nothingLeft(texts: readonly string[]): Promise<void> {
  const deadline = performance.now() + 10_000;
  for (;;) {
    const left = texts.flatMap(processesWith);
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
  return {
    engine,
    folder: place,
    options: all,
    dispose: async () => {
      const { runtime } = engine;
      for (const { id } of await runtime.listContainers()) ids.push(id);
      for (const { id } of await runtime.listPodSandboxes()) await runtime.removePodSandbox(id);
      await runtime[Symbol.asyncDispose]();
      await nothingLeft([place, ...ids.map((id) => `KEELSON_CONTAINER_ID=${id}`)]);
      const left = ['containers', 'run', 'sandboxes'].flatMap((name) => readdirSync(join(place, 'state', name)));
      if (left.length > 0) throw new Error(`files are left: ${left.join(', ')}`);
      await rm(place, { recursive: true, force: true });
    },
  };
}

/** `capabilities` are what this machine lets the runtime do; `extra` changes the harness. */
export function processHarness(
  name: string,
  capabilities: RuntimeCapabilities,
  options: Partial<ProcessRuntimeOptions> = {},
  extra: Partial<RuntimeHarness<OpenedProcess>> = {},
): RuntimeHarness<OpenedProcess> {
  return {
    name,
    capabilities,
    concurrency: 4,
    missingImage: 'registry.test/missing:1',
    builtinImage: 'host',
    sharesHostNetwork: true,
    open: () => openProcess(options),
    reopen: async (opened) => {
      await opened.engine.runtime[Symbol.asyncDispose]();
      return openProcess(opened.options, opened.folder);
    },
    program: (intent) => {
      if (intent.kind === 'run') return { image: 'host', command: ['sleep', '100000'] };
      if (intent.kind === 'stubborn') return shell('trap "" TERM; while :; do sleep 100000; done');
      if (intent.kind === 'cannotStart') return { image: 'host', command: ['/no/such/program'] };
      return shell(`sleep ${(intent.afterMs ?? 0) / 1000}; exit ${intent.code}`);
    },
    settled: async (opened, id, intent) => {
      if (intent.kind !== 'stubborn') return;
      const { pid } = await opened.engine.runtime.containerStatus(id);
      while (!ignoresTerm(pid)) await new Promise((resolve) => setTimeout(resolve, 5));
    },
    shell,
    printf: (...args) => ({ image: 'host', command: ['printf'], args }),
    scratch: (opened) => mkdtemp(join(opened.folder, 'scratch-')),
    ...(capabilities.users && { otherUser: { uid: 65534, gid: 65534 } }),
    ...extra,
  };
}
