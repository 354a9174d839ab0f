import { type ChildProcess, spawn } from 'node:child_process';
import { collectOutput, endOf, signalProcess, toolPath } from '@keelson/container-monitor';
import { type ExecSyncRequest, type ExecSyncResult, RuntimeError } from '@keelson/container-runtime';
import { findProgram } from '../launch/find-program.ts';
import { searchPathOf } from '../launch/make-plan.ts';
import { execWords } from '../launch/start-script.ts';
import type { LaunchPlan } from '../state/records.ts';

/**
 * Starts a command where a container is, in a session of its own; `wrap` adds words before it. @throws `StartFailed`,
 * `InvalidArgument`
 */
export async function spawnInside(
  plan: LaunchPlan,
  containerPid: number,
  command: readonly string[],
  stdio: readonly ('pipe' | 'ignore')[],
  wrap: (words: readonly string[]) => readonly string[] = (words) => words,
): Promise<ChildProcess> {
  const [name = '', ...args] = command;
  if (command.some((word) => word.includes('\0')))
    throw new RuntimeError('InvalidArgument', 'a command cannot have NUL in it');
  const program = await findProgram(
    plan.root === undefined ? '/' : `/proc/${containerPid}/root`,
    name,
    searchPathOf(plan),
    plan.workingDir,
  );
  const [tool = '', ...words] = wrap(execWords(plan, containerPid, [program, ...args]));
  return spawn(tool, words, { detached: true, stdio: [...stdio], cwd: '/', env: { PATH: toolPath } });
}

/**
 * Runs a command to its end and collects its output. Its process group is killed when the time is over or the caller
 * gives up.
 * @throws `DeadlineExceeded`, `Aborted`, `StartFailed`
 */
export async function runCommand(
  plan: LaunchPlan,
  containerPid: number,
  request: ExecSyncRequest,
  signal: AbortSignal | undefined,
): Promise<ExecSyncResult> {
  const child = await spawnInside(plan, containerPid, request.command, ['ignore', 'pipe', 'pipe']);
  const kill = () => child.pid !== undefined && signalProcess(-child.pid, 'SIGKILL');
  return collectOutput({ stdout: child.stdout, stderr: child.stderr, ended: endOf(child) }, request, { signal, kill });
}
