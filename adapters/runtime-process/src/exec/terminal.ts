import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { listProcesses, signalProcess } from '@keelson/container-host';
import { exitCodeOf, keptOutput, newId, terminalResizer } from '@keelson/container-monitor';
import { type ExecRequest, type ProcessStreams, RuntimeError } from '@keelson/container-runtime';
import type { ProcessContainer, ProcessContext } from '../container/process-container.ts';
import { withTerminalVariable } from '../launch/launch-plan.ts';
import { terminalCommand } from '../launch/launch-script.ts';
import type { Permissions } from '../machine/permissions.ts';
import { spawnInside } from './run-command.ts';

const terminalPollMs = 5;

export interface TerminalParts {
  readonly around: ProcessContext;
  readonly permissions: Permissions;
}

/**
 * Runs a command with a new terminal and returns the streams of the terminal.
 *
 * @throws RuntimeError `Unsupported`, `StartFailed`, `InvalidArgument`
 */
export async function execTerminal(
  { around, permissions }: TerminalParts,
  container: ProcessContainer,
  containerPid: number,
  { command, stdin, stdout }: ExecRequest,
): Promise<ProcessStreams> {
  if (!permissions.terminals)
    throw new RuntimeError(
      'Unsupported',
      'a terminal needs the programs script, stty and tty, which this machine lacks',
    );
  const plan = withTerminalVariable(container.record.plan);
  const file = join(around.state.container(container.id), `terminal-${newId()}`);
  // The pipe stays open without input, because its end would be sent to the terminal as an end of file.
  const stdio = ['pipe', stdout ? 'pipe' : 'ignore', 'ignore'] as const;
  const child = await spawnInside(plan, containerPid, command, stdio, (commandLine) =>
    terminalCommand(plan, file, commandLine),
  );
  child.stdin?.on('error', () => {}); // the command may end before it has read everything
  const output = keptOutput(child.stdout);
  let isOver = false;
  const ended = new Promise<{ exitCode: number }>((resolve) => {
    child.on('error', () => resolve({ exitCode: 126 }));
    child.on('exit', (code, signal) => resolve({ exitCode: exitCodeOf(code, signal) }));
  });
  void ended.then(() => {
    isOver = true;
    void rm(file, { force: true });
  });
  // Not injected: the start of another process takes real time.
  // The terminal must exist before the caller can set its size.
  while (!isOver && !(await isWritten(file))) await delay(terminalPollMs);
  return {
    ...(stdin && child.stdin !== null && { stdin: child.stdin }),
    ...(output !== null && { stdout: output }),
    ended,
    resize: terminalResizer(file),
    close: () => {
      if (!isOver && child.pid !== undefined) killWithTerminal(child.pid);
      child.stdin?.destroy();
      output?.destroy();
    },
  };
}

async function isWritten(file: string): Promise<boolean> {
  return ((await stat(file).catch(() => undefined))?.size ?? 0) > 0;
}

/** Kills the process that provides a terminal, and the session that its only child leads. */
function killWithTerminal(terminalPid: number): void {
  const processes = listProcesses();
  const leader = processes.find(({ parent }) => parent === terminalPid);
  for (const { pid, session } of processes) if (session === leader?.pid) signalProcess(pid, 'SIGKILL');
  signalProcess(-terminalPid, 'SIGKILL');
}
