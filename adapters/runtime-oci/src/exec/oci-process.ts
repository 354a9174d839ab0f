import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import {
  exitCodeOf,
  keptOutput,
  newId,
  signalProcess,
  terminalResizer,
  withTerminal,
} from '@keelson/container-monitor';
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
const killed = 137;

/** A command that the binary runs in a container. */
export interface OciProcess {
  readonly stdin: Writable | null;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  readonly ended: Promise<number>;
  /** Kills the command and what belongs to its session. */
  kill(): void;
  /** Present with a terminal. */
  resize?(size: TerminalSize): void;
}

/** Resolves when the command was executed. @throws `StartFailed`, `InvalidArgument` */
export async function startProcess(
  around: OciContext,
  container: OciContainer,
  request: OciProcessRequest,
): Promise<OciProcess> {
  const [name = ''] = request.command;
  if (name === '') throw new RuntimeError('StartFailed', 'the command is empty');
  if (request.command.some((word) => word.includes('\0')))
    throw new RuntimeError('InvalidArgument', 'a command cannot have NUL in it');
  const folder = join(container.folder, `exec-${newId()}`);
  await mkdir(folder, { mode: 0o700 });
  const files = { folder, pid: join(folder, 'pid'), log: join(folder, 'log'), terminal: join(folder, 'terminal') };
  const start = request.tty ? startWithTerminal : startDetached;
  try {
    const process = await start(around, container.id, request, files);
    // What stays goes with the container.
    const tidy = () => void rm(folder, { recursive: true, force: true }).catch(() => {});
    process.ended.then(tidy, tidy);
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
 * The command has our pipes themselves, and the reaper says how it ended. With the binary in between, what a command
 * leaves in the background would hold the binary, and the caller with it.
 */
async function startDetached(
  { binary, programs }: OciContext,
  id: string,
  request: OciProcessRequest,
  files: Files,
): Promise<OciProcess> {
  const pipe = (wanted: boolean) => (wanted ? 'pipe' : 'ignore');
  const words = binary.words(files.log, 'exec', '--detach', '--pid-file', files.pid, id, ...request.command);
  const child = spawn(programs.reaper, words, {
    stdio: [pipe(request.stdin), pipe(request.stdout), pipe(request.stderr), 'pipe'],
    ...{ detached: true, cwd: '/', env: binaryEnvironment },
  });
  const failed = new Promise<never>((_resolve, reject) => {
    child.on('error', (error) => reject(new RuntimeError('StartFailed', error.message, { cause: error })));
  });
  failed.catch(() => {});
  const [stdout, stderr] = [keptOutput(child.stdout), keptOutput(child.stderr)];
  const records = new ReaperRecords(child.stdio[3] as Readable);
  // The binary ends when the command runs, unless the command was quicker; by then the process id is written, or never
  // will be.
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
    // Without a record the reaper was killed, and nobody knows.
    ended: records.statusOf(pid).then((status) => (status === undefined ? killed : exitCodeOfStatus(status))),
    kill: () => signalSession(pid),
  };
}

/** The binary stays between the command's terminal and one of ours. */
async function startWithTerminal(
  { binary }: OciContext,
  id: string,
  request: OciProcessRequest,
  files: Files,
): Promise<OciProcess> {
  const words = binary.words(files.log, 'exec', '--tty', '--pid-file', files.pid, id, ...request.command);
  const [program = '', ...args] = withTerminal(['/bin/sh', '-c', 'tty > "$0"; exec "$@"', files.terminal, ...words]);
  const pipe = (wanted: boolean) => (wanted ? 'pipe' : 'ignore');
  const child = spawn(program, args, {
    // The end of its input would be typed into the terminal; without input it stays open, and silent.
    stdio: ['pipe', pipe(request.stdout), 'ignore'],
    ...{ detached: true, cwd: '/', env: { ...binaryEnvironment, SHELL: '/bin/sh' } },
  });
  const stdout = keptOutput(child.stdout);
  const ended = new Promise<number>((resolve) => {
    child.on('error', () => resolve(126));
    child.on('exit', (code, signal) => resolve(exitCodeOf(code, signal)));
  });
  const pid = await pidOnceKnown(child, files.pid);
  if (pid === undefined) {
    throw new RuntimeError('StartFailed', (await lastMessageIn(files.log)) ?? 'the command did not start');
  }
  return {
    ...{ stdin: request.stdin ? child.stdin : null, stdout, stderr: null, ended },
    kill: () => signalSession(pid),
    resize: terminalResizer(files.terminal),
  };
}

async function pidOnceKnown(child: ChildProcess, file: string): Promise<number | undefined> {
  for (;;) {
    const over = child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
    const pid = await readPid(file);
    if (pid !== undefined || over) return pid;
    await delay(terminalPollMs);
  }
}

async function readPid(file: string): Promise<number | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return /^\d+$/.test(text.trim()) ? Number(text) : undefined;
}

/** The binary makes every command the leader of a session. */
function signalSession(pid: number): void {
  signalProcess(-pid, 'SIGKILL');
  signalProcess(pid, 'SIGKILL');
}

/** Of a status as `wait` gives it: 128 + number for a signal. */
function exitCodeOfStatus(status: number): number {
  const signal = status & 0x7f;
  return signal === 0 ? (status >> 8) & 0xff : 128 + signal;
}
