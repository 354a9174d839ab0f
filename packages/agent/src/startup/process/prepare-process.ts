import { join } from 'node:path';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { ProcessConfig } from '../../base/config/agent-config.ts';
import { keepKernelDefaults } from './kernel-defaults.ts';
import { type LockFile, takeLock } from './lock-file.ts';
import { ownProcess, setMaxOpenFiles, setOomScoreAdj } from './own-limits.ts';
import { guardLoops } from './uncaught-errors.ts';

export interface PrepareProcessOptions {
  readonly config: ProcessConfig;
  /** The directory of --root-dir. */
  readonly rootDir: string;
  /** The directory of the kernel settings. */
  readonly sysctlRoot: string;
  /** Resolves when the process receives a termination signal. */
  readonly terminated: Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The lock and the kernel settings of the process, which are released when the agent ends. */
export interface PreparedProcess {
  /** Resolves when the agent must end because another process waits for the lock. */
  readonly ended: Promise<void>;
  release(): Promise<void>;
}

/**
 * Prepares the process as the options specify: it takes the lock file, sets the kernel settings, and sets the limits of
 * the process.
 *
 * @returns undefined when the process was terminated before the lock was free
 * @throws MachineError when the file cannot be locked, or when kernel settings differ and must not be changed
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
  void lock?.wanted.then(() => logger.info('another process waits for the lock file', { path }));
  return lock;
}
