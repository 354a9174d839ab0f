import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type ProcessIdentity,
  parseStat,
  readIfPresent,
  removeIfPresent,
  writeAtomically,
} from '@keelson/container-host';
import { ExitReason } from '@keelson/container-runtime';

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
  /** Set when the cause of the end is determined. */
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

  /** How a container ended; undefined while it has not. */
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
