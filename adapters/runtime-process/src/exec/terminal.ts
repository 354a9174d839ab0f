import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  exitCodeOf,
  keptOutput,
  listProcesses,
  newId,
  signalProcess,
  terminalResizer,
} from '@keelson/container-monitor';
import { type ExecRequest, type ProcessStreams, RuntimeError } from '@keelson/container-runtime';
import type { ProcessContainer } from '../container/process-container.ts';
import type { ProcessContext } from '../container/process-context.ts';
import { withTerminalVariable } from '../launch/make-plan.ts';
import { terminalWords } from '../launch/start-script.ts';
import type { Permissions } from '../machine/permissions.ts';
import { spawnInside } from './run-command.ts';

const terminalPollMs = 5;

export interface TerminalParts {
  readonly around: ProcessContext;
  readonly permissions: Permissions;
}

/**
 * A command with a terminal of its own; the caller has the other side. @throws `Unsupported`, `StartFailed`,
 * `InvalidArgument`
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
  // The end of its input would be typed into the terminal; without input it stays open, and silent.
  const stdio = ['pipe', stdout ? 'pipe' : 'ignore', 'ignore'] as const;
  const child = await spawnInside(plan, containerPid, command, stdio, (words) => terminalWords(plan, file, words));
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
  // A size that is set at once must find the terminal.
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

/** Kills the holder of a terminal, and the session that its only child leads. */
function killWithTerminal(holder: number): void {
  const processes = listProcesses();
  const leader = processes.find(({ parent }) => parent === holder);
  for (const { pid, session } of processes) if (session === leader?.pid) signalProcess(pid, 'SIGKILL');
  signalProcess(-holder, 'SIGKILL');
}
