import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { memoryFolder } from '@keelson/test-support';

const binary = fileURLToPath(new URL('../../../packages/keelson/dist/bundle/keelson.js', import.meta.url));
const readyTimeoutMs = 60_000;

/** A `keelson serve` in a process of its own. */
export interface KeelsonProcess {
  readonly url: string;
  readonly data: string;
  readonly kubeconfig: string;
  readonly pid: number;
  /** SIGTERM; resolves to the exit code. */
  stop(): Promise<number | null>;
  /** SIGKILL; resolves when the process has ended. */
  kill(): Promise<void>;
  /** The output of the process on stdout and stderr so far. */
  output(): { readonly stdout: string; readonly stderr: string };
}

/** A fresh directory under the system's temporary directory. */
export function temporaryDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'keelson-test-'));
}

/** The same in memory, where the machine has enough: for data that only has to survive the end of a process. */
export function memoryDirectory(): Promise<string> {
  return mkdtemp(join(memoryFolder(), 'keelson-test-'));
}

export function removeDirectory(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true });
}

function exited(child: ChildProcess): Promise<number | null> {
  return child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve(child.exitCode)
    : new Promise((resolve) => child.once('exit', (code) => resolve(code)));
}

/** The environment without settings of the caller. */
export function cleanEnvironment(extra: Readonly<Record<string, string>> = {}): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !entry[0].startsWith('KEELSON_') && entry[0] !== 'KUBECONFIG',
  );
  return { ...Object.fromEntries(kept), ...extra };
}

/** The storage that KEELSON_TEST_STORAGE names; the command's own default otherwise. */
export function storageArguments(): string[] {
  const storage = process.env['KEELSON_TEST_STORAGE'];
  return storage === undefined ? [] : ['--storage', storage];
}

/** Runs the command to its end, for calls that are not meant to serve. */
export async function runKeelson(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [binary, ...args], {
    env: cleanEnvironment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += String(chunk);
  });
  child.stderr.on('data', (chunk) => {
    stderr += String(chunk);
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', (exitCode) => resolve(exitCode)));
  return { code, stdout, stderr };
}

/** Conditions of the process of a server. */
export interface ProcessConditions {
  readonly env?: Readonly<Record<string, string>>;
  /** The program that runs the server; default: that of this process. */
  readonly node?: string;
  /** How many descriptors the process may open; default: as many as this process. */
  readonly descriptors?: number;
}

/**
 * Starts a server and waits for its ready line. The system chooses the port unless `--listen` is among the arguments.
 */
export async function startKeelson(
  data: string,
  args: readonly string[] = [],
  command = 'serve',
  { env, node = process.execPath, descriptors }: ProcessConditions = {},
): Promise<KeelsonProcess> {
  const listen = args.includes('--listen') ? [] : ['--listen', '127.0.0.1:0'];
  const started = [node, binary, command, ...listen, '--data', data, ...args];
  // The shell becomes the process, so that its id is that of the server.
  const [program = '', ...rest] =
    descriptors === undefined ? started : ['sh', '-c', `ulimit -n ${descriptors} && exec "$@"`, 'sh', ...started];
  const child = spawn(program, rest, {
    env: cleanEnvironment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    stderr += String(chunk);
  });
  const url = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`no ready line within ${readyTimeoutMs} ms\n${stdout}${stderr}`));
    }, readyTimeoutMs);
    child.stdout.on('data', (chunk) => {
      stdout += String(chunk);
      const line = /^keelson: serving on (\S+)$/m.exec(stdout);
      if (line?.[1] === undefined) return;
      clearTimeout(timer);
      resolve(line[1]);
    });
    child.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`keelson ended with ${code} before it was ready\n${stdout}${stderr}`));
    });
  });
  return {
    url,
    data,
    kubeconfig: join(data, 'kubeconfig'),
    pid: child.pid ?? 0,
    stop: () => {
      child.kill('SIGTERM');
      return exited(child);
    },
    kill: async () => {
      child.kill('SIGKILL');
      await exited(child);
    },
    output: () => ({ stdout, stderr }),
  };
}
