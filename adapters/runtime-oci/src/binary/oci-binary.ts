import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { toolPath } from '@keelson/container-host';
import { RuntimeError } from '@keelson/container-runtime';

export interface BinaryVersion {
  /** The name that the binary reports: `runc`, `crun` or another one. */
  readonly name: string;
  readonly version: string;
}

/** Environment of the binary. It contains no variables of the runtime. */
export const binaryEnvironment = { PATH: toolPath };

/** Calls the OCI binary. Containers and commands are started by the reaper instead. */
export class OciBinary {
  readonly path: string;
  readonly version: BinaryVersion;
  /** Directory in which the binary stores the state of containers. */
  readonly #root: string;

  constructor(path: string, version: BinaryVersion, root: string) {
    this.path = path;
    this.version = version;
    this.#root = root;
  }

  /** Program and arguments of a call. The binary writes its errors to `log`, one JSON object per line. */
  commandLine(log: string | undefined, ...args: readonly string[]): string[] {
    const logging = log === undefined ? [] : ['--log', log, '--log-format', 'json'];
    return [this.path, '--root', this.#root, ...logging, ...args];
  }

  /** Whether the binary has a container with this ID, running or not. */
  has(id: string): boolean {
    return existsSync(join(this.#root, id));
  }

  /** Kills the processes of a container and removes its cgroup. No effect when it does not exist. @throws `Internal` */
  async delete(id: string): Promise<void> {
    if (this.has(id)) await this.#run(['delete', '--force', id]);
  }

  /** `file` contains the new limits. @throws `InvalidArgument` with the message of the binary */
  async update(id: string, file: string): Promise<void> {
    await this.#run(['update', '--resources', file, id]).catch((error: Error) => {
      throw new RuntimeError('InvalidArgument', error.message, { cause: error });
    });
  }

  #run(args: readonly string[]): Promise<void> {
    const [program = '', ...commandArgs] = this.commandLine(undefined, ...args);
    return new Promise((resolve, reject) => {
      execFile(program, commandArgs, { env: binaryEnvironment }, (error, _stdout, stderr) => {
        if (error === null) resolve();
        else
          reject(
            new RuntimeError('Internal', `${this.version.name} ${args[0]}: ${lastMessage(stderr) || error.message}`),
          );
      });
    });
  }
}

/** The last message in the log or the error output of the binary. */
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
