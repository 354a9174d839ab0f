import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { OpenedEngine, Program, RuntimeHarness } from '@keelson/conformance';
import type { RuntimeCapabilities } from '@keelson/container-runtime';
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

/** Waits until no process of the folder is left; throws with what is. */
export async function nothingLeft(folder: string): Promise<void> {
  const deadline = performance.now() + 10_000;
  for (;;) {
    const left = processesWith(folder);
    if (left.length === 0) return;
    if (performance.now() > deadline) throw new Error(`processes are left: ${left.join('; ')}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export async function openProcess(options: Partial<ProcessRuntimeOptions> = {}, folder?: string): Promise<OpenedProcess> {
  const place = folder ?? (await mkdtemp('/tmp/keelson-process-'));
  const all = { stateDirectory: join(place, 'state'), nodeIp: '192.0.2.1', ...options };
  const engine = await createProcessRuntime(all);
  return {
    engine,
    folder: place,
    options: all,
    dispose: async () => {
      const { runtime } = engine;
      for (const { id } of await runtime.listPodSandboxes()) await runtime.removePodSandbox(id);
      await runtime[Symbol.asyncDispose]();
      await nothingLeft(place);
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
    shell,
    printf: (...args) => ({ image: 'host', command: ['printf'], args }),
    scratch: (opened) => mkdtemp(join(opened.folder, 'scratch-')),
    ...(capabilities.users && { otherUser: { uid: 65534, gid: 65534 } }),
    ...extra,
  };
}
