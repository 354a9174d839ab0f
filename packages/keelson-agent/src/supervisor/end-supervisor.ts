import { MachineError } from '@keelson/agent';
import type { Clock, Logger } from '@keelson/core/runtime';
import { isAlive, type ProcessIdentity } from './process-identity.ts';
import { findRunning } from './running-record.ts';
import { supervisorPlace } from './supervisor-place.ts';
import { waitUntil } from './wait-until.ts';

/** Grace period after SIGTERM. The supervisor itself gives pending calls one second. */
const graceMs = 10_000;
const killMs = 5000;

/**
 * Ends a supervisor. Its containers continue to run. A supervisor that does not end after SIGTERM is killed.
 */
export async function endSupervisor(running: ProcessIdentity, clock: Clock, logger: Logger): Promise<void> {
  if (await ends(running, 'SIGTERM', graceMs, clock)) return;
  logger.warn('supervisor does not end after SIGTERM, it is killed', { pid: running.pid });
  if (await ends(running, 'SIGKILL', killMs, clock)) return;
  throw new MachineError(`the supervisor of runtime-b (process ${running.pid}) does not end after SIGKILL`);
}

async function ends(
  running: ProcessIdentity,
  signal: NodeJS.Signals,
  withinMs: number,
  clock: Clock,
): Promise<boolean> {
  const isGone = async () => !(await isAlive(running));
  if (await isGone()) return true;
  try {
    process.kill(running.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
  return waitUntil(isGone, withinMs, clock);
}

/** Ends the supervisor of an earlier agent with this root directory when the options no longer select a supervisor. */
export async function retireSupervisor(rootDir: string, clock: Clock, logger: Logger): Promise<void> {
  const running = await findRunning(supervisorPlace(rootDir));
  if (running === undefined) return;
  await endSupervisor(running, clock, logger);
  logger.info('supervisor of runtime-b ended, the options do not select one', { pid: running.pid });
}
