import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OpenedEngine, RuntimeHarness } from '@keelson/conformance';
import type { ContainerEngine } from '@keelson/container-runtime';
import { createFakeRuntime, type FakeScript, FakeWorld } from '../../src/index.ts';

export interface OpenedFake extends OpenedEngine {
  readonly world: FakeWorld;
}

/** The command of a container is its script: `run`, `stubborn`, `cannotStart`, or `exit CODE AFTER_MS`. */
export const scriptOfCommand: FakeScript = ({ config }) => {
  const [word, code, afterMs] = config.command ?? [];
  if (word === 'exit') return { exitCode: Number(code), exitAfterMs: Number(afterMs) };
  if (word === 'stubborn') return { stopAfterMs: 'never' };
  return word === 'cannotStart' ? { startError: 'no such program' } : {};
};

/** `alter` lets a test put something between the suite and the fake. */
export function fakeHarness(
  name = 'fake',
  alter: (engine: ContainerEngine) => ContainerEngine = (engine) => engine,
): RuntimeHarness<OpenedFake> {
  const missingImage = 'registry.test/missing:1';
  const folders: string[] = [];
  const openOn = (world: FakeWorld): OpenedFake => {
    const engine = alter(createFakeRuntime(world));
    return {
      engine,
      world,
      dispose: async () => {
        await engine.runtime[Symbol.asyncDispose]();
        await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
      },
    };
  };
  const { capabilities } = createFakeRuntime(new FakeWorld()).runtime;
  return {
    name,
    capabilities,
    missingImage,
    pullableImage: 'registry.test/app:1',
    open: async () => {
      const pull = (reference: string) =>
        reference === missingImage
          ? { error: { code: 'ImageNotFound', message: `no "${reference}"` } as const }
          : { sizeBytes: 1000 };
      return openOn(new FakeWorld({ script: scriptOfCommand, pull, images: ['registry.test/base:1'] }));
    },
    reopen: async ({ engine, world }) => {
      await engine.runtime[Symbol.asyncDispose]();
      return openOn(world);
    },
    program: (intent) => {
      const words = intent.kind === 'exit' ? ['exit', String(intent.code), String(intent.afterMs ?? 0)] : [intent.kind];
      return { image: 'registry.test/base:1', command: words };
    },
    scratch: async () => {
      const folder = await mkdtemp(join(tmpdir(), 'keelson-fake-'));
      folders.push(folder);
      return folder;
    },
  };
}
