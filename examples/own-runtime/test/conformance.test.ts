import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type OpenedEngine, type RuntimeHarness, registerRuntimeConformance } from '@keelson/conformance';
import { parseRuntimeOptions } from '@keelson/container-runtime';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import test from 'ava';
import { capabilities } from '../src/child-runtime.ts';
import adapter from '../src/own-runtime.ts';

interface Opened extends OpenedEngine {
  readonly folder: string;
}

const ignoresTermination = 'trap "" TERM; while :; do sleep 0.05; done';

const harness: RuntimeHarness<Opened> = {
  name: 'child',
  capabilities,
  concurrency: 4,
  missingImage: 'registry.test/missing:1',
  builtinImage: 'host',
  sharesHostNetwork: true,
  async open() {
    const folder = await mkdtemp(join(tmpdir(), 'own-runtime-'));
    const engine = await adapter.open(parseRuntimeOptions(adapter, {}), {
      nodeName: 'n1',
      stateDirectory: join(folder, 'state'),
      imageDirectories: [],
      clock: systemClock,
      logger: silentLogger,
    });
    return {
      engine,
      folder,
      async dispose() {
        await engine.runtime[Symbol.asyncDispose]();
        await rm(folder, { recursive: true, force: true });
      },
    };
  },
  program(intent) {
    const shell = (script: string) => ({ image: 'host', command: ['/bin/sh', '-c', script] });
    switch (intent.kind) {
      case 'run':
        return { image: 'host', command: ['sleep', '1000'] };
      case 'exit':
        return shell(`sleep ${(intent.afterMs ?? 0) / 1000}; exit ${intent.code}`);
      case 'stubborn':
        return shell(ignoresTermination);
      case 'cannotStart':
        return { image: 'host', command: ['/no/such/program'] };
    }
  },
  async settled({ engine }, id, { kind }) {
    if (kind !== 'stubborn') return;
    // The shell ignores the signal from the moment at which the kernel shows it as ignored.
    for (;;) {
      const { pid } = await engine.runtime.containerStatus(id);
      const status = pid === undefined ? '' : await readFile(`/proc/${pid}/status`, 'utf8');
      const ignored = BigInt(`0x${/^SigIgn:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`);
      if ((ignored & (1n << 14n)) !== 0n) return;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  },
  scratch: ({ folder }) => mkdtemp(join(folder, 'scratch-')),
};

registerRuntimeConformance(test, harness);
