import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** An empty directory that is removed when the test ends. */
export async function temporaryDirectory(t: { teardown(run: () => Promise<void>): void }): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'keelson-agent-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** A pod manifest in YAML; `extra` is inserted below `spec`. */
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

/** Pauses between probes grow up to this time, so that waiting costs little processor time. */
const longestPauseMs = 50;

/**
 * Polls in real time until `probe` returns a value other than undefined and false, and returns that value. An exception
 * counts as false; the last one is the cause of the failure at the end of the time, whose message names `what`.
 */
export async function until<T>(
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  what = 'the condition is met',
  timeoutMs = 30_000,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let cause: unknown;
  for (let pauseMs = 2; ; pauseMs = Math.min(longestPauseMs, pauseMs * 1.5)) {
    try {
      const value = await probe();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      cause = error;
    }
    if (performance.now() > deadline) throw new Error(`timed out after ${timeoutMs} ms: ${what}`, { cause });
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

type Fields = Readonly<Record<string, unknown>>;

/** A logger that records warnings and errors with their fields, and the messages of level info. */
export interface ListeningLogger {
  readonly lines: { readonly message: string; readonly fields: Fields }[];
  readonly infos: string[];
  debug(): void;
  info(message: string): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
  child(): ListeningLogger;
}

export function listeningLogger(): ListeningLogger {
  const infos: string[] = [];
  const lines: { message: string; fields: Fields }[] = [];
  const record = (message: string, fields: Fields = {}) => void lines.push({ message, fields });
  const info = (message: string) => void infos.push(message);
  const logger = { lines, infos, debug: () => {}, info, warn: record, error: record, child: () => logger };
  return logger;
}
