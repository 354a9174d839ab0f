import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '@keelson/agent';
import type { Probe } from './probe-runtimes.ts';
import { type FoundRuntime, foundRuntimes } from './runtime-request.ts';

export interface RuntimeProbes {
  engine(): Promise<Probe>;
  oci(): Promise<Probe>;
}

/** What the machine has, and why it was taken. */
export interface Found {
  readonly name: FoundRuntime;
  readonly reason: string;
  /** It was taken by an agent before. */
  readonly again: boolean;
}

const fileName = 'runtime-in-use';

async function rememberedIn(rootDir: string): Promise<FoundRuntime | undefined> {
  const text = await readFile(join(rootDir, fileName), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  return foundRuntimes.find((name) => name === text.trim());
}

/**
 * Selects the runtime when no option names one: see docs/reference/agent-rules.md#choice-of-the-runtime. The first
 * selection is permanent, because the pods of the node run there: an engine that starts later, or a binary that is
 * installed later, must not run them a second time.
 */
export async function findRuntime(rootDir: string, probes: RuntimeProbes): Promise<Found> {
  const before = await rememberedIn(rootDir);
  if (before !== undefined) {
    return {
      name: before,
      reason: `it was taken before; remove ${join(rootDir, fileName)} to choose anew`,
      again: true,
    };
  }
  const [engine, oci] = await Promise.all([probes.engine(), probes.oci()]);
  const reason = [engine, oci].slice(0, engine.usable ? 1 : 2).map((probe) => probe.reason);
  return { name: engine.usable ? 'engine' : oci.usable ? 'oci' : 'process', reason: reason.join('; '), again: false };
}

/** Notes what was taken. */
export async function rememberRuntime(rootDir: string, name: FoundRuntime): Promise<void> {
  if ((await rememberedIn(rootDir)) !== name) await replaceFile(join(rootDir, fileName), `${name}\n`);
}
