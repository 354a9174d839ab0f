import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { toolPath } from '@keelson/container-monitor';
import { RuntimeError } from '@keelson/container-runtime';

export interface BinaryVersion {
  /** `runc`, `crun`, or what else calls itself so. */
  readonly name: string;
  readonly version: string;
}

/** Environment of the binary: nothing of ours. */
export const binaryEnvironment = { PATH: toolPath };

/** The OCI command line: what is done with it besides starting and commands, which go through the reaper. */
export class OciBinary {
  readonly path: string;
  readonly version: BinaryVersion;
  /** Where the binary keeps what it knows of containers. */
  readonly #root: string;

  constructor(path: string, version: BinaryVersion, root: string) {
    this.path = path;
    this.version = version;
    this.#root = root;
  }

  /** Program and arguments of a call. Errors go to `log`, a line of JSON each. */
  words(log: string | undefined, ...args: readonly string[]): string[] {
    const logging = log === undefined ? [] : ['--log', log, '--log-format', 'json'];
    return [this.path, '--root', this.#root, ...logging, ...args];
  }

  /** Whether the binary has a container of this name, running or not. */
  has(id: string): boolean {
    return existsSync(join(this.#root, id));
  }

  /** Kills what runs in it and takes back its cgroup; harmless when there is none. @throws `Internal` */
  async delete(id: string): Promise<void> {
    if (this.has(id)) await this.#run(['delete', '--force', id]);
  }

  /** `file` holds the new limits. @throws `InvalidArgument` with what the binary says */
  async update(id: string, file: string): Promise<void> {
    await this.#run(['update', '--resources', file, id]).catch((error: Error) => {
      throw new RuntimeError('InvalidArgument', error.message, { cause: error });
    });
  }

  #run(args: readonly string[]): Promise<void> {
    const [program = '', ...words] = this.words(undefined, ...args);
    return new Promise((resolve, reject) => {
      execFile(program, words, { env: binaryEnvironment }, (error, _stdout, stderr) => {
        if (error === null) resolve();
        else
          reject(
            new RuntimeError('Internal', `${this.version.name} ${args[0]}: ${lastMessage(stderr) || error.message}`),
          );
      });
    });
  }
}

/** What the binary said last, out of its log or its error output. */
export function lastMessage(text: string): string {
  const line = text.trim().split('\n').at(-1) ?? '';
  try {
    return String((JSON.parse(line) as { msg?: unknown }).msg ?? line);
  } catch {
    return /level=\w+ msg="?(.*?)"?$/.exec(line)?.[1]?.replaceAll('\\"', '"') ?? line;
  }
}

/** The last message in a log file of the binary; undefined when there is none. */
export async function lastMessageIn(log: string): Promise<string | undefined> {
  const text = await readFile(log, 'utf8').catch(() => '');
  return text.trim() === '' ? undefined : lastMessage(text);
}
