import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { isJsonObject, UsageError, withoutPassword } from '@keelson/core/internal';
import type { SubjectAddress } from './subject.ts';

/** The program and the first arguments that run the command `keelson`. */
export type KeelsonCommand = readonly [program: string, ...args: string[]];

const readyMs = 30_000;
const stopMs = 10_000;

/** A server that the benchmark has started. */
export interface StorageServer extends SubjectAddress {
  stop(): Promise<void>;
}

/** The value of `storage` in a config file. @throws UsageError */
function choiceOf(storage: string, folder: string): unknown {
  if (storage.startsWith('{')) {
    let choice: unknown;
    try {
      choice = JSON.parse(storage);
    } catch (error) {
      throw new UsageError(`--storage ${storage} is not JSON: ${(error as Error).message}`);
    }
    if (!isJsonObject(choice) || typeof choice['adapter'] !== 'string')
      throw new UsageError(`--storage ${storage} must contain "adapter", the name of a package or a path`);
    return { ...choice, adapter: absolute(choice['adapter']) };
  }
  if (storage === 'lmdb:') return `lmdb:${join(folder, 'store')}`;
  // A URL begins with a scheme and a colon. Every other text is the package name or the path of an adapter.
  if (/^[a-z][a-z0-9+.-]*:/.test(storage)) return storage;
  return { adapter: absolute(storage) };
}

const absolute = (module: string): string => (module.startsWith('.') ? resolve(module) : module);

/** Starts `keelson serve` on a storage. @throws UsageError with the reason that the server reports */
export async function serveStorage(
  command: KeelsonCommand,
  storage: string,
  kinds: readonly string[],
  folder: string,
): Promise<StorageServer> {
  const name = withoutPassword(storage);
  await mkdir(folder, { recursive: true });
  const config = join(folder, 'keelson.json');
  await writeFile(config, JSON.stringify({ storage: choiceOf(storage, folder), kinds: kinds.map(absolute) }), {
    mode: 0o600,
  });
  const [program, ...first] = command;
  const words = ['serve', '--config', config, '--insecure', '--listen', '127.0.0.1:0', '--data', join(folder, 'data')];
  const child = spawn(program, [...first, ...words, '--log-level', 'warn'], { stdio: ['ignore', 'pipe', 'pipe'] });
  const exited = new Promise<void>((done) => child.once('close', () => done()));
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors = (errors + String(chunk)).slice(-4096);
  });
  const stop = async () => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), stopMs);
    await exited;
    clearTimeout(timer);
  };
  const lastLine = () =>
    errors
      .trim()
      .split('\n')
      .at(-1)
      ?.replace(/^keelson: /, '') ?? '';
  let timer: NodeJS.Timeout | undefined;
  try {
    const url = await new Promise<string>((ready, fail) => {
      timer = setTimeout(() => fail(new UsageError(`no answer within ${readyMs / 1000} s; ${lastLine()}`)), readyMs);
      let output = '';
      child.stdout.on('data', (chunk) => {
        output += String(chunk);
        const line = /^keelson: serving on (\S+)$/m.exec(output);
        if (line?.[1] !== undefined) ready(line[1]);
      });
      child.once('error', fail);
      void exited.then(() => fail(new UsageError(lastLine())));
    });
    return { name, access: { server: url }, ...(child.pid === undefined ? {} : { pid: child.pid }), stop };
  } catch (error) {
    await stop();
    throw new UsageError(`the storage ${name} cannot be measured: ${(error as Error).message}`);
  } finally {
    clearTimeout(timer);
  }
}
