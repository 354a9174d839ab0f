import { readFile, writeFile } from 'node:fs/promises';
import type { Logger } from '@keelson/core';
import { type RunProgram, runProgram } from '../../base/run-program.ts';

/** Where the limits of a process stand and how they are set. */
export interface ProcessFiles {
  /** The directory of the process below /proc. */
  readonly directory: string;
  readonly pid: number;
  readonly run: RunProgram;
}

export const ownProcess: ProcessFiles = { directory: '/proc/self', pid: process.pid, run: runProgram };

/**
 * Sets how many files the process may open. Where it may not have more than its hard limit, it gets that, and the log
 * says so: an agent with fewer files is better than none.
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
 * Sets the out-of-memory score adjustment of the process; where it may not be as low as that, it stays as it is, and
 * the log says so.
 */
export async function setOomScoreAdj(wanted: number, { directory }: ProcessFiles, logger: Logger): Promise<void> {
  const path = `${directory}/oom_score_adj`;
  try {
    await writeFile(path, String(wanted));
  } catch (err) {
    const is = (await readFile(path, 'utf8').catch(() => 'unknown')).trim();
    logger.warn('--oom-score-adj: the system does not allow the adjustment', { wanted, is, err });
  }
}
