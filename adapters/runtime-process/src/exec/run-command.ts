import { type ChildProcess, spawn } from 'node:child_process';
import { signalProcess, toolPath } from '@keelson/container-host';
import { collectOutput, endOf } from '@keelson/container-monitor';
import { type ExecSyncRequest, type ExecSyncResult, RuntimeError } from '@keelson/container-runtime';
import { findProgram, searchPathOf } from '../launch/launch-plan.ts';
import { execCommand } from '../launch/launch-script.ts';
import type { LaunchPlan } from '../state/records.ts';

/**
 * Starts a command in the environment of a container, in a new session.
 *
 * @param wrap prepends a program and its arguments to the command line
 * @throws RuntimeError `StartFailed`, `InvalidArgument`
 */
export async function spawnInside(
  plan: LaunchPlan,
  containerPid: number,
  command: readonly string[],
  stdio: readonly ('pipe' | 'ignore')[],
  wrap: (commandLine: readonly string[]) => readonly string[] = (commandLine) => commandLine,
): Promise<ChildProcess> {
  const [name = '', ...args] = command;
  if (command.some((argument) => argument.includes('\0')))
    throw new RuntimeError('InvalidArgument', 'a command must not contain NUL');
  const program = await findProgram(
    plan.root === undefined ? '/' : `/proc/${containerPid}/root`,
    name,
    searchPathOf(plan),
    plan.workingDir,
  );
  const [tool = '', ...toolArgs] = wrap(execCommand(plan, containerPid, [program, ...args]));
  return spawn(tool, toolArgs, { detached: true, stdio: [...stdio], cwd: '/', env: { PATH: toolPath } });
}

/**
 * Runs a command until it ends and collects its output. Its process group is killed at the timeout or when the caller
 * aborts.
 *
 * @throws RuntimeError `DeadlineExceeded`, `Aborted`, `StartFailed`
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
