import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  type ProcessIdentity,
  parseStat,
  readIfPresent,
  removeIfPresent,
  removeUnfinished,
  writeAtomically,
} from '@keelson/container-host';
import {
  type ContainerConfig,
  type ContainerId,
  ExitReason,
  type PodSandboxConfig,
  type SandboxId,
} from '@keelson/container-runtime';

/**
 * The layout of the state directory:
 *
 * ```
 * boot-id            id of the boot in which the processes were started
 * monitor.sh         script that monitors one container
 * sandboxes/ID.json  record; ID.stopped exists once the sandbox was stopped
 * containers/ID/     record.json, resources.json once limits were changed, pipes, files of the adapter
 * run/ID.KIND        monitor, pid, failed, exit, logged; see RunFileKind
 * keeper/            socket and lock of the log keeper
 * images/            unpacked images
 * ```
 */
export class StateDirectory {
  readonly root: string;
  readonly #monitorScript: string;
  readonly #folders: readonly string[];

  /** `monitorScript` is the content of monitor.sh; `folders` are additional folders of the adapter. */
  constructor(root: string, monitorScript: string, folders: readonly string[] = []) {
    this.root = resolve(root);
    this.#monitorScript = monitorScript;
    this.#folders = folders.map((name) => join(this.root, name));
  }

  get sandboxes(): string {
    return join(this.root, 'sandboxes');
  }
  get containers(): string {
    return join(this.root, 'containers');
  }
  get run(): string {
    return join(this.root, 'run');
  }
  get keeper(): string {
    return join(this.root, 'keeper');
  }
  get images(): string {
    return join(this.root, 'images');
  }
  get monitor(): string {
    return join(this.root, 'monitor.sh');
  }

  container(id: string): string {
    return join(this.containers, id);
  }

  /** Creates missing folders, removes incomplete entries, and reports whether the machine was rebooted since. */
  async prepare(bootIdFile = '/proc/sys/kernel/random/boot_id'): Promise<{ readonly rebooted: boolean }> {
    await mkdir(this.root, { recursive: true, mode: 0o700 });
    for (const folder of [this.sandboxes, this.containers, this.run, this.keeper, this.images, ...this.#folders]) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await removeUnfinished(folder);
    }
    await removeUnfinished(this.root);
    await writeAtomically(this.monitor, this.#monitorScript, 0o500);
    for (const name of await readdir(this.containers)) {
      if (name.startsWith('.')) await rm(join(this.containers, name), { recursive: true });
    }
    for (const name of await readdir(this.sandboxes)) {
      const [id = '', kind] = name.split('.');
      const orphan = kind === 'stopped' && (await readIfPresent(join(this.sandboxes, `${id}.json`))) === undefined;
      if (orphan) await removeIfPresent(join(this.sandboxes, name));
    }
    const bootId = (await readFile(bootIdFile, 'utf8')).trim();
    const known = await readIfPresent(join(this.root, 'boot-id'));
    return { rebooted: known !== undefined && known !== bootId };
  }

  /** Records the current boot, once the result of {@link prepare} has been processed. */
  async confirmBoot(bootIdFile = '/proc/sys/kernel/random/boot_id'): Promise<void> {
    await writeAtomically(join(this.root, 'boot-id'), (await readFile(bootIdFile, 'utf8')).trim());
  }
}

/**
 * Kinds of files of a container in the `run` folder:
 *
 * - `monitor` and `pid`: the line of /proc/PID/stat of the monitor and of the container's first process
 * - `failed`: why the process could not be started
 * - `ends`: ended processes, as some monitors record them
 * - `exit`: the exit code, and optionally details
 * - `logged`: the log is complete
 */
export type RunFileKind = 'monitor' | 'pid' | 'failed' | 'ends' | 'exit' | 'logged';
const kinds: readonly RunFileKind[] = ['monitor', 'pid', 'failed', 'ends', 'exit', 'logged'];

/** How a container ended. */
export interface ExitRecord {
  readonly exitCode: number;
  readonly finishedAt: number;
  /** Reason of the exit, such as `OOMKilled`; absent when it follows from the exit code. */
  readonly reason?: string;
  readonly message?: string;
}

/** An exit to write. The default of `finishedAt` is the time of the write. */
export type WrittenExit = Omit<ExitRecord, 'finishedAt'> & Partial<Pick<ExitRecord, 'finishedAt'>>;

/** Reads and writes the files of the `run` folder. */
export class RunFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  path(id: string, kind: RunFileKind): string {
    return join(this.#folder, `${id}.${kind}`);
  }

  /** The process that a `monitor` or `pid` file identifies, and the time of the file. */
  async process(id: string, kind: 'monitor' | 'pid'): Promise<{ identity: ProcessIdentity; at: number } | undefined> {
    const path = this.path(id, kind);
    const text = await readIfPresent(path);
    if (text === undefined || !text.endsWith('\n')) return undefined;
    const identity = parseStat(text);
    return identity && { identity, at: (await stat(path)).mtimeMs };
  }

  /** How a container ended; undefined while it has not ended. */
  async exit(id: string): Promise<ExitRecord | undefined> {
    const path = this.path(id, 'exit');
    const text = await readIfPresent(path);
    if (text === undefined) return undefined;
    const { mtimeMs } = await stat(path);
    const [code = '', rest = ''] = text.split('\n');
    if (!/^\d{1,3}$/.test(code))
      return { exitCode: 137, finishedAt: mtimeMs, reason: ExitReason.Lost, message: 'the exit record is corrupt' };
    const details: Partial<Omit<ExitRecord, 'exitCode'>> = rest === '' ? {} : JSON.parse(rest);
    return { exitCode: Number(code), finishedAt: mtimeMs, ...details };
  }

  /** Writes an exit with details that the monitor cannot determine: start failed, monitor lost, out of memory. */
  async writeExit(id: string, { exitCode, ...details }: WrittenExit): Promise<void> {
    await writeAtomically(this.path(id, 'exit'), `${exitCode}\n${JSON.stringify(details)}\n`);
  }

  async failure(id: string): Promise<string | undefined> {
    return (await readIfPresent(this.path(id, 'failed')))?.trim();
  }

  async isLogged(id: string): Promise<boolean> {
    return (await readIfPresent(this.path(id, 'logged'))) !== undefined;
  }

  async remove(id: string): Promise<void> {
    for (const kind of kinds) await removeIfPresent(this.path(id, kind));
  }
}

/** Immutable description of a sandbox, written at its creation. */
export interface SandboxRecord {
  readonly id: SandboxId;
  readonly createdAt: number;
  readonly config: PodSandboxConfig;
}

/** Immutable description of a container, written at its creation. Adapters add the data they need to start it. */
export interface ContainerRecord {
  readonly id: ContainerId;
  readonly sandboxId: SandboxId;
  readonly createdAt: number;
  readonly config: ContainerConfig;
  readonly imageId: string;
  /** Absolute path of the log file, which the log keeper reads from this record. Absent: output is discarded. */
  readonly logPath?: string;
}

/** A random id of 24 hex digits, which is valid in file names, cgroup names and command lines. */
export function newId(): string {
  return randomBytes(12).toString('hex');
}

/** Whether a text has the form of {@link newId}. */
export function isId(text: string): boolean {
  return /^[0-9a-f]{24}$/.test(text);
}
