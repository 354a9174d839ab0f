import { readFile, writeFile } from 'node:fs/promises';
import type { Logger } from '@keelson/core/runtime';
import { type RunProgram, runProgram } from '../../base/run-program.ts';

/** Access to the limits of a process. */
export interface ProcessFiles {
  /** The directory of the process below /proc. */
  readonly directory: string;
  readonly pid: number;
  readonly run: RunProgram;
}

export const ownProcess: ProcessFiles = { directory: '/proc/self', pid: process.pid, run: runProgram };

/**
 * Sets the limit of open files of the process. Where the process is not permitted to exceed its hard limit, the hard
 * limit is set and a warning is logged; the agent starts nevertheless.
 */
export async function setMaxOpenFiles(
  wanted: number,
  { directory, pid, run }: ProcessFiles,
  logger: Logger,
): Promise<void> {
  const set = (limit: number | string) => run('prlimit', ['--pid', String(pid), `--nofile=${limit}:${limit}`]);
  try {
    await set(wanted);
  } catch (err) {
    const limits = await readFile(`${directory}/limits`, 'utf8').catch(() => '');
    const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(limits)?.[1];
    if (hard !== undefined && hard !== 'unlimited') await set(hard).catch(() => undefined);
    logger.warn('--max-open-files: the limit is what the system allows', { wanted, limit: hard ?? 'unknown', err });
  }
}

/**
 * Sets the out-of-memory score adjustment of the process. Where the process is not permitted to set it, the adjustment
 * is not changed and a warning is logged.
 */
export async function setOomScoreAdj(wanted: number, { directory }: ProcessFiles, logger: Logger): Promise<void> {
  const path = `${directory}/oom_score_adj`;
  try {
    await writeFile(path, String(wanted));
  } catch (err) {
    const current = (await readFile(path, 'utf8').catch(() => 'unknown')).trim();
    logger.warn('--oom-score-adj: the system does not allow the adjustment', { wanted, current, err });
  }
}
