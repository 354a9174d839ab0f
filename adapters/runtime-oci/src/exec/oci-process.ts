import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { signalProcess } from '@keelson/container-host';
import { exitCodeOf, keptOutput, newId, terminalResizer, withTerminal } from '@keelson/container-monitor';
import { RuntimeError, type TerminalSize } from '@keelson/container-runtime';
import { binaryEnvironment, lastMessageIn } from '../binary/oci-binary.ts';
import type { OciContainer } from '../container/oci-container.ts';
import type { OciContext } from '../container/oci-context.ts';
import { ReaperRecords } from './reaper-records.ts';

export interface OciProcessRequest {
  readonly command: readonly string[];
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

const terminalPollMs = 10;
const killedExitCode = 137;

/** A command that is running in a container. */
export interface OciProcess {
  readonly stdin: Writable | null;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  readonly ended: Promise<number>;
  /** Kills the command and all processes in its process group. */
  kill(): void;
  /** Sets the size of the terminal; present if the command has a terminal. */
  resize?(size: TerminalSize): void;
}

/** Starts a command; resolves when its program is executed. @throws RuntimeError `StartFailed`, `InvalidArgument` */
export async function startProcess(
  around: OciContext,
  container: OciContainer,
  request: OciProcessRequest,
): Promise<OciProcess> {
  const [name = ''] = request.command;
  if (name === '') throw new RuntimeError('StartFailed', 'the command is empty');
  if (request.command.some((argument) => argument.includes('\0')))
    throw new RuntimeError('InvalidArgument', 'a command must not contain NUL');
  const folder = join(container.folder, `exec-${newId()}`);
  await mkdir(folder, { mode: 0o700 });
  const files = { folder, pid: join(folder, 'pid'), log: join(folder, 'log'), terminal: join(folder, 'terminal') };
  const start = request.tty ? startWithTerminal : startDetached;
  try {
    const process = await start(around, container.id, request, files);
    // Errors are ignored: the directory is removed with the container at the latest.
    const removeFiles = () => void rm(folder, { recursive: true, force: true }).catch(() => {});
    process.ended.then(removeFiles, removeFiles);
    return process;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

interface Files {
  readonly pid: string;
  readonly log: string;
  readonly terminal: string;
}

/**
 * Connects the command directly to the pipes; the reaper reports its exit status. If the binary forwarded the output,
 * it and the caller would wait for background processes that the command leaves behind.
 */
async function startDetached(
  { binary, programs }: OciContext,
  id: string,
  request: OciProcessRequest,
  files: Files,
): Promise<OciProcess> {
  const pipe = (enabled: boolean) => (enabled ? 'pipe' : 'ignore');
  const commandLine = binary.commandLine(
    files.log,
    'exec',
    '--detach',
    '--pid-file',
    files.pid,
    id,
    ...request.command,
  );
  const child = spawn(programs.reaper, commandLine, {
    stdio: [pipe(request.stdin), pipe(request.stdout), pipe(request.stderr), 'pipe'],
    ...{ detached: true, cwd: '/', env: binaryEnvironment },
  });
  const failed = new Promise<never>((_resolve, reject) => {
    child.on('error', (error) => reject(new RuntimeError('StartFailed', error.message, { cause: error })));
  });
  failed.catch(() => {});
  const [stdout, stderr] = [keptOutput(child.stdout), keptOutput(child.stderr)];
  const records = new ReaperRecords(child.stdio[3] as Readable);
  // The binary writes the process ID of the command to a file before it ends itself. The file is read after the end of
  // each child of the reaper, because the command may end before the binary.
  let pid: number | undefined;
  for (let count = 0; pid === undefined && !records.over; ) {
    count = await Promise.race([records.moreThan(count), failed]);
    pid = await readPid(files.pid);
  }
  if (pid === undefined) {
    for (const stream of child.stdio) stream?.destroy();
    throw new RuntimeError('StartFailed', (await lastMessageIn(files.log)) ?? 'the command did not start');
  }
  return {
    ...{ stdin: child.stdin, stdout, stderr },
    // A missing record means that the reaper was killed, so the exit code is unknown.
    ended: records.statusOf(pid).then((status) => (status === undefined ? killedExitCode : exitCodeOfStatus(status))),
    kill: () => signalSession(pid),
  };
}

/** The binary keeps running and connects the terminal of the command with one outside the container. */
async function startWithTerminal(
  { binary }: OciContext,
  id: string,
  request: OciProcessRequest,
  files: Files,
): Promise<OciProcess> {
  const commandLine = binary.commandLine(files.log, 'exec', '--tty', '--pid-file', files.pid, id, ...request.command);
  const [program = '', ...args] = withTerminal([
    '/bin/sh',
    '-c',
    'tty > "$0"; exec "$@"',
    files.terminal,
    ...commandLine,
  ]);
  const pipe = (enabled: boolean) => (enabled ? 'pipe' : 'ignore');
  const child = spawn(program, args, {
    // The pipe stays open without input, because its end would be sent to the terminal as an end of file.
    stdio: ['pipe', pipe(request.stdout), 'ignore'],
    ...{ detached: true, cwd: '/', env: { ...binaryEnvironment, SHELL: '/bin/sh' } },
  });
  const stdout = keptOutput(child.stdout);
  const ended = new Promise<number>((resolve) => {
    child.on('error', () => resolve(126));
    child.on('exit', (code, signal) => resolve(exitCodeOf(code, signal)));
  });
  const pid = await pidWhenWritten(child, files.pid);
  if (pid === undefined) {
    throw new RuntimeError('StartFailed', (await lastMessageIn(files.log)) ?? 'the command did not start');
  }
  return {
    ...{ stdin: request.stdin ? child.stdin : null, stdout, stderr: null, ended },
    kill: () => signalSession(pid),
    resize: terminalResizer(files.terminal),
  };
}

async function pidWhenWritten(child: ChildProcess, file: string): Promise<number | undefined> {
  for (;;) {
    const over = child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
    const pid = await readPid(file);
    if (pid !== undefined || over) return pid;
    // Not injected: the start of another process takes real time.
    await delay(terminalPollMs);
  }
}

async function readPid(file: string): Promise<number | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return /^\d+$/.test(text.trim()) ? Number(text) : undefined;
}

/** Kills the process group of a command. The binary starts the command as the leader of a new session. */
function signalSession(pid: number): void {
  signalProcess(-pid, 'SIGKILL');
  signalProcess(pid, 'SIGKILL');
}

/** The exit code for a status of `wait`: 128 + number for a signal. */
function exitCodeOfStatus(status: number): number {
  const signal = status & 0x7f;
  return signal === 0 ? (status >> 8) & 0xff : 128 + signal;
}
