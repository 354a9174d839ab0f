import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { type ExecSyncRequest, type ExecSyncResult, RuntimeError } from '@keelson/container-runtime';
import { findProgram } from '../launch/find-program.ts';
import { searchPathOf } from '../launch/make-plan.ts';
import { execWords } from '../launch/start-script.ts';
import { signalProcess } from '../machine/proc.ts';
import { toolPath } from '../machine/tools.ts';
import type { LaunchPlan } from '../state/records.ts';

const defaultMaxOutputBytes = 16 * 1024 * 1024;

/** Starts a command where a container is, in a session of its own. @throws `StartFailed`, `InvalidArgument` */
export async function spawnInside(
  plan: LaunchPlan,
  containerPid: number,
  command: readonly string[],
  stdio: readonly ('pipe' | 'ignore')[],
): Promise<ChildProcess> {
  const [name = '', ...args] = command;
  if (command.some((word) => word.includes('\0'))) throw new RuntimeError('InvalidArgument', 'a command cannot have NUL in it');
  const program = await findProgram(
    plan.root === undefined ? '/' : `/proc/${containerPid}/root`,
    name,
    searchPathOf(plan),
    plan.workingDir,
  );
  const [tool = '', ...words] = execWords(plan, containerPid, [program, ...args]);
  return spawn(tool, words, { detached: true, stdio: [...stdio], cwd: '/', env: { PATH: toolPath } });
}

/** 128 + number for a command that a signal ended. */
export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  if (code !== null) return code;
  return 128 + (signal === null ? 0 : constants.signals[signal]);
}

/**
 * Runs a command to its end and collects its output. Its process group is killed when the time is over or the caller gives up.
 * @throws `DeadlineExceeded`, `Aborted`, `StartFailed`
 */
export async function runCommand(
  plan: LaunchPlan,
  containerPid: number,
  request: ExecSyncRequest,
  signal: AbortSignal | undefined,
): Promise<ExecSyncResult> {
  const { execTimeoutMs, maxOutputBytes = defaultMaxOutputBytes } = request;
  const child = await spawnInside(plan, containerPid, request.command, ['ignore', 'pipe', 'pipe']);
  const stdout = collect(child.stdout, maxOutputBytes);
  const stderr = collect(child.stderr, maxOutputBytes);
  return new Promise((resolve, reject) => {
    const kill = () => child.pid !== undefined && signalProcess(-child.pid, 'SIGKILL');
    const giveUp = (error: RuntimeError) => {
      finish();
      kill();
      child.stdout?.destroy();
      child.stderr?.destroy();
      reject(error);
    };
    const onAbort = () => giveUp(new RuntimeError('Aborted', 'execSync: the caller gave up', { cause: signal?.reason }));
    const late = () => giveUp(new RuntimeError('DeadlineExceeded', `the command did not end within ${execTimeoutMs} ms`));
    const timer = execTimeoutMs === undefined ? undefined : setTimeout(late, execTimeoutMs);
    const finish = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted) return onAbort();
    child.on('error', (error) => giveUp(new RuntimeError('StartFailed', error.message, { cause: error })));
    // Not `close`: something the command left behind may hold the pipes, and it is not what was asked for.
    child.on('exit', (code, killedBy) => {
      finish();
      const exitCode = exitCodeOf(code, killedBy);
      setImmediate(() => {
        void drained(child).then(() => {
          resolve({ stdout: stdout(), stderr: stderr(), exitCode });
        });
      });
    });
  });
}

/** Waits for the end of the output, but no longer than a command's leftovers deserve. */
function drained(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      child.stdout?.destroy();
      child.stderr?.destroy();
      resolve();
    };
    const timer = setTimeout(done, 200);
    let open = 2;
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null || stream.readableEnded || stream.destroyed) open -= 1;
      else stream.once('close', () => --open === 0 && done());
    }
    if (open === 0) done();
  });
}

function collect(stream: NodeJS.ReadableStream | null, limit: number): () => Uint8Array {
  const chunks: Buffer[] = [];
  let length = 0;
  stream?.on('data', (chunk: Buffer) => {
    const kept = chunk.subarray(0, Math.max(0, limit - length));
    length += kept.length;
    if (kept.length > 0) chunks.push(kept);
  });
  return () => Buffer.concat(chunks);
}
