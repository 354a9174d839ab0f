import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '@keelson/container-host';
import type { Probe } from './probe-runtimes.ts';
import { type DetectedRuntime, detectedRuntimes } from './runtime-request.ts';

export interface RuntimeProbes {
  engine(): Promise<Probe>;
  oci(): Promise<Probe>;
}

/** The runtime that was detected, and why. */
export interface Detected {
  readonly name: DetectedRuntime;
  readonly reason: string;
  /** True when an earlier start of the agent selected it. */
  readonly remembered: boolean;
}

const fileName = 'runtime-in-use';

async function rememberedIn(rootDir: string): Promise<DetectedRuntime | undefined> {
  const text = await readFile(join(rootDir, fileName), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  return detectedRuntimes.find((name) => name === text.trim());
}

/**
 * Detects the runtime when no option selects one: see docs/reference/agent-rules.md#choice-of-the-runtime. The first
 * selection is permanent, because the pods of the node run there: an engine that starts later, or a binary that is
 * installed later, must not run them a second time.
 */
export async function detectRuntime(rootDir: string, probes: RuntimeProbes): Promise<Detected> {
  const before = await rememberedIn(rootDir);
  if (before !== undefined) {
    const reason = `an earlier start selected it; remove ${join(rootDir, fileName)} to select again`;
    return { name: before, reason, remembered: true };
  }
  const [engine, oci] = await Promise.all([probes.engine(), probes.oci()]);
  const reasons = [engine, oci].slice(0, engine.usable ? 1 : 2).map((probe) => probe.reason);
  return {
    name: engine.usable ? 'engine' : oci.usable ? 'oci' : 'process',
    reason: reasons.join('; '),
    remembered: false,
  };
}

/** Records the selection for later starts. */
export async function rememberRuntime(rootDir: string, name: DetectedRuntime): Promise<void> {
  if ((await rememberedIn(rootDir)) !== name) await replaceFile(join(rootDir, fileName), `${name}\n`);
}
