import { join } from 'node:path';
import type { Clock, Logger } from '@keelson/core';
import type { ProcessConfig } from '../../base/config/agent-config.ts';
import { keepKernelDefaults } from './kernel-defaults.ts';
import { type LockFile, takeLock } from './lock-file.ts';
import { ownProcess, setMaxOpenFiles, setOomScoreAdj } from './own-limits.ts';
import { guardLoops } from './uncaught-errors.ts';

export interface PrepareProcessOptions {
  readonly config: ProcessConfig;
  /** Directory of the agent. */
  readonly rootDir: string;
  /** Directory of the kernel's settings. */
  readonly sysctlRoot: string;
  /** Resolves when the process is asked to end. */
  readonly terminated: Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What the process holds while the agent runs. */
export interface PreparedProcess {
  /** Resolves when the agent has to end: somebody else wants the lock. */
  readonly ended: Promise<void>;
  release(): Promise<void>;
}

/**
 * Makes the process what the options say: alone with its lock, with its limits, on a kernel as it wants it. Undefined
 * when it was asked to end before the lock was free. @throws MachineError
 */
export async function prepareProcess(options: PrepareProcessOptions): Promise<PreparedProcess | undefined> {
  const { config, rootDir, sysctlRoot, logger } = options;
  let lock: LockFile | undefined;
  if (config.lockFile !== undefined) {
    lock = await waitForLock(config.lockFile, options);
    if (lock === undefined) return undefined;
  }
  let restoreKernel: () => Promise<void>;
  try {
    restoreKernel = await keepKernelDefaults({
      root: sysctlRoot,
      recordFile: join(rootDir, 'kernel-settings.json'),
      protect: config.protectKernelDefaults,
      logger,
    });
  } catch (error) {
    await lock?.release();
    throw error;
  }
  await setMaxOpenFiles(config.maxOpenFiles, ownProcess, logger);
  await setOomScoreAdj(config.oomScoreAdj, ownProcess, logger);
  const unguard = guardLoops(process, config.reallyCrash, logger);
  return {
    ended: lock?.wanted ?? new Promise<void>(() => {}),
    async release() {
      unguard();
      await restoreKernel();
      await lock?.release();
    },
  };
}

async function waitForLock(path: string, options: PrepareProcessOptions): Promise<LockFile | undefined> {
  const { config, terminated, clock, logger } = options;
  const waiting = new AbortController();
  void terminated.then(() => waiting.abort());
  const watch = config.exitOnLockContention;
  const lock = await takeLock({ path, watch, clock, signal: waiting.signal });
  void lock?.wanted.then(() => logger.info('somebody else wants the lock file', { path }));
  return lock;
}
