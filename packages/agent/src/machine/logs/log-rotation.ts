import { link, rename, rm, stat } from 'node:fs/promises';
import type { ContainerRuntime, ContainerStatus } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core/runtime';
import { Repeater } from '../../base/repeater.ts';
import type { RuntimePods } from '../../runtime-view/runtime-pods.ts';
import { rotatedAt, rotatedLogs, rotatedName } from './log-files.ts';

/** Bounds of the log of one container. */
export interface LogBounds {
  /** A larger file is rotated. */
  readonly maxFileBytes: number;
  /** Number of files of one container, including the one that is appended to. */
  readonly maxFiles: number;
}

/** The defaults of kubelet (`containerLogMaxSize: 10Mi`, `containerLogMaxFiles: 5`). */
export const defaultLogBounds: LogBounds = { maxFileBytes: 10 * 1024 * 1024, maxFiles: 5 };

export interface LogRotationOptions {
  readonly runtime: Pick<ContainerRuntime, 'reopenContainerLog'>;
  readonly states: Pick<RuntimePods, 'all'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly callTimeoutMs: number;
  readonly periodMs: number;
  readonly bounds?: LogBounds;
}

/**
 * Limits the logs of running containers: a file above the size limit is renamed, and the runtime opens a new one at its
 * path.
 */
export class LogRotation {
  readonly #options: LogRotationOptions;
  readonly #bounds: LogBounds;
  readonly #loop: Repeater;

  constructor(options: LogRotationOptions) {
    this.#options = options;
    this.#bounds = options.bounds ?? defaultLogBounds;
    const { clock, logger, periodMs } = options;
    this.#loop = new Repeater({
      clock,
      logger,
      what: 'log rotation',
      periodMs,
      run: (signal) => this.round(signal),
    });
  }

  start(): void {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  /** Rotates every log above the size limit. Errors are logged; the next round retries. */
  async round(signal: AbortSignal): Promise<void> {
    for (const { containers } of this.#options.states.all()) {
      for (const { id, state, logPath } of containers) {
        if (signal.aborted) return;
        if (state !== 'running' || logPath === undefined) continue;
        try {
          await this.#bound(id, logPath, signal);
        } catch (err) {
          if (signal.aborted) return;
          this.#options.logger.warn('a log was not rotated', {
            component: 'log-rotation',
            container: id,
            logPath,
            err,
          });
        }
      }
    }
  }

  async #bound(id: ContainerStatus['id'], path: string, signal: AbortSignal): Promise<void> {
    const size = await stat(path).then(
      (found) => found.size,
      () => 0,
    );
    if (size < this.#bounds.maxFileBytes) return;
    const { runtime, clock, callTimeoutMs } = this.#options;
    const rotated = await rotatedLogs(path);
    // Two places are left for the file that is rotated now and for the new one.
    const excess = rotated.splice(0, Math.max(0, rotated.length - (this.#bounds.maxFiles - 2)));
    for (const old of excess) await rm(old, { force: true });
    const target = nameAfter(path, rotated.at(-1) ?? excess.at(-1), clock.now());
    await rename(path, target);
    try {
      await runtime.reopenContainerLog(id, { signal, timeoutMs: callTimeoutMs });
    } catch (error) {
      // The container still writes to the renamed file, so it gets its name back. The link fails when the runtime has
      // opened a new file.
      await link(target, path).then(
        () => rm(target),
        () => {},
      );
      throw error;
    }
  }
}

/**
 * The order of the names is the order of the files, also when the clock was set back or a file lasted less than a
 * second.
 */
function nameAfter(path: string, last: string | undefined, nowMs: number): string {
  return rotatedName(path, Math.max(nowMs, (last === undefined ? 0 : rotatedAt(last)) + 1000));
}
