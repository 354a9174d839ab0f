import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LogFields, Logger } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import type { ExecutionContext } from 'ava';

/** An empty directory that is gone when the test ends. */
export async function temporaryDirectory(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'keelson-agent-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** A manifest in YAML; `extra` stands below spec. */
export function manifest(name: string, image = 'host', extra = ''): string {
  return `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
spec:
${extra}  containers:
  - name: main
    image: ${image}
    command: [sleep, "60"]
`;
}

export const namesOf = (pods: readonly Pod[]): string[] => pods.map(({ metadata }) => metadata?.name ?? '');

/** Waits in real time until the probe returns a value. */
export async function until<T>(probe: () => T | undefined | false, timeoutMs = 30_000): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = probe();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > deadline) throw new Error(`not so within ${timeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** A logger that remembers warnings and errors, and of what went well the words. */
export function listeningLogger(): Logger & {
  readonly lines: { readonly message: string; readonly fields: LogFields }[];
  readonly infos: string[];
} {
  const infos: string[] = [];
  const lines: { message: string; fields: LogFields }[] = [];
  const keep = (message: string, fields: LogFields = {}) => void lines.push({ message, fields });
  const info = (message: string) => void infos.push(message);
  const logger = { lines, infos, debug: () => {}, info, warn: keep, error: keep, child: () => logger };
  return logger;
}
