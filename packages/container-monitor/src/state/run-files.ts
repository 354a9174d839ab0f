import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ExitReason } from '@keelson/container-runtime';
import { readIfPresent, removeIfPresent, writeAtomically } from '../machine/atomic-file.ts';
import { type ProcessIdentity, parseStat } from '../machine/proc.ts';

/**
 * Kinds of files that a container leaves in the `run` folder while it lives:
 * `monitor` and `pid` hold the line of /proc/PID/stat of monitor and container (process id and start time name a
 * process for good), `failed` why the process could not be started, `ends` what some monitors note of processes that
 * ended, `exit` the exit code and perhaps more, `logged` that the log is complete.
 */
export type RunFileKind = 'monitor' | 'pid' | 'failed' | 'ends' | 'exit' | 'logged';
const kinds: readonly RunFileKind[] = ['monitor', 'pid', 'failed', 'ends', 'exit', 'logged'];

/** How a container ended. */
export interface ExitRecord {
  readonly exitCode: number;
  readonly finishedAt: number;
  /** Given when whoever wrote it knew more than the code. */
  readonly reason?: string;
  readonly message?: string;
}

/** An exit without its time is one of now. */
export type WrittenExit = Omit<ExitRecord, 'finishedAt'> & Partial<Pick<ExitRecord, 'finishedAt'>>;

export class RunFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  path(id: string, kind: RunFileKind): string {
    return join(this.#folder, `${id}.${kind}`);
  }

  /** Identity of the process that a `monitor` or `pid` file names, and when it was written. */
  async process(id: string, kind: 'monitor' | 'pid'): Promise<{ identity: ProcessIdentity; at: number } | undefined> {
    const path = this.path(id, kind);
    const text = await readIfPresent(path);
    if (text === undefined || !text.endsWith('\n')) return undefined;
    const identity = parseStat(text);
    return identity && { identity, at: (await stat(path)).mtimeMs };
  }

  async exit(id: string): Promise<ExitRecord | undefined> {
    const path = this.path(id, 'exit');
    const text = await readIfPresent(path);
    if (text === undefined) return undefined;
    const { mtimeMs } = await stat(path);
    const [code = '', rest = ''] = text.split('\n');
    if (!/^\d{1,3}$/.test(code))
      return { exitCode: 137, finishedAt: mtimeMs, reason: ExitReason.Lost, message: 'the exit record is damaged' };
    const details: Partial<Omit<ExitRecord, 'exitCode'>> = rest === '' ? {} : JSON.parse(rest);
    return { exitCode: Number(code), finishedAt: mtimeMs, ...details };
  }

  /** For ends of which more is known than the monitor can write: never started, nobody watched, out of memory. */
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
