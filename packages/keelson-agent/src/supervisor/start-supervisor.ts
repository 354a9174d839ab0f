import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, open, rename, stat } from 'node:fs/promises';
import { MachineError } from '@keelson/agent';
import { isJsonObject } from '@keelson/core/internal';
import { type SupervisorOptions, supervisorProgram } from './supervisor-options.ts';
import { type SupervisorPlace, supervisorPlace } from './supervisor-place.ts';

/** The message that a supervisor sends once to the process that started it. */
export type StartMessage = { readonly ready: true } | { readonly failed: string };

/** Time limit of a start. A supervisor with many containers starts slowly, because it has to discover all of them. */
const startMs = 60_000;
/** How long a start waits for an ending supervisor to release the lock. */
const lockS = 10;
/** A log file above this size is renamed when a supervisor starts; one old log file is retained. */
const maxLogBytes = 1 << 20;
/** Exit code of `flock` when another process has the lock. */
const lockedCode = 75;

/**
 * Starts a supervisor that outlives this process: in a session of its own, with a log file in place of this process's
 * output. Resolves when it listens. The supervisor holds the lock of the root directory from its start to its end, so
 * that two supervisors never manage the same containers.
 *
 * @throws MachineError with the message of the supervisor when it fails
 */
export async function startSupervisor(options: SupervisorOptions): Promise<void> {
  const place = supervisorPlace(options.rootDir);
  await mkdir(place.folder, { recursive: true, mode: 0o700 });
  await rotate(place);
  const log = await open(place.log, 'a', 0o600);
  try {
    const lockArguments = [
      '--no-fork',
      '--exclusive',
      '--timeout',
      String(lockS),
      '--conflict-exit-code',
      String(lockedCode),
      place.lock,
    ];
    const program = [process.execPath, '--no-warnings', supervisorProgram, JSON.stringify(options)];
    const child = spawn('flock', [...lockArguments, ...program], {
      detached: true,
      cwd: '/',
      stdio: ['ignore', log.fd, log.fd, 'ipc'],
    });
    await started(child, place);
  } finally {
    await log.close();
  }
}

async function started(child: ChildProcess, place: SupervisorPlace): Promise<void> {
  let timeout: NodeJS.Timeout | undefined;
  const outcome = await new Promise<string | undefined>((resolve) => {
    // Not injected: the start of another process takes real time.
    timeout = setTimeout(() => {
      child.kill('SIGKILL');
      resolve(`it does not listen after ${startMs / 1000} s`);
    }, startMs);
    child.on('error', (error) => resolve(error.message));
    child.once('message', (message) =>
      resolve(isJsonObject(message) && 'failed' in message ? String(message['failed']) : undefined),
    );
    // The event `exit` may be emitted before the event of the last message.
    child.once('close', (code, signal) => resolve(endReason(code, signal, place)));
  });
  clearTimeout(timeout);
  if (child.connected) child.disconnect();
  child.unref();
  if (outcome !== undefined) throw new MachineError(`the supervisor of runtime-b cannot be started: ${outcome}`);
}

function endReason(code: number | null, signal: string | null, { lock, log }: SupervisorPlace): string {
  if (code === lockedCode) return `another supervisor has locked ${lock}`;
  return `it ended immediately (${signal ?? `exit code ${code}`}); see ${log}`;
}

async function rotate({ log }: SupervisorPlace): Promise<void> {
  const size = await stat(log).then(
    (found) => found.size,
    () => 0,
  );
  if (size > maxLogBytes) await rename(log, `${log}.old`);
}
