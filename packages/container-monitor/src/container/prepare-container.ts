import { spawn } from 'node:child_process';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { join, normalize } from 'node:path';
import { findTool, tool, toolPath, tryTool } from '@keelson/container-host';
import { type ContainerConfig, type ImageConfig, RuntimeError, type TerminalSize } from '@keelson/container-runtime';
import type { ContainerRecord } from '../state/state-directory.ts';
import type { ContainerContext } from './container-context.ts';

/** Returns the text when it contains nothing forbidden. @throws `InvalidArgument` */
export function passable(text: string, forbidden: RegExp, what: string): string {
  if (forbidden.test(text))
    throw new RuntimeError(
      'InvalidArgument',
      `${what} cannot be passed to a process: ${JSON.stringify(text.slice(0, 64))}`,
    );
  return text;
}

/**
 * Program and arguments of a container. Its command replaces entry point and arguments of the image; its arguments
 * replace only those of the image.
 * @throws `InvalidArgument` when there is no command, or one contains NUL.
 */
export function commandOf(config: ContainerConfig, image: ImageConfig): string[] {
  const { command = [], args = [] } = config;
  const commandLine =
    command.length > 0
      ? [...command, ...args]
      : [...(image.entrypoint ?? []), ...(args.length > 0 ? args : (image.cmd ?? []))];
  if (commandLine.length === 0)
    throw new RuntimeError('InvalidArgument', 'no command specified, neither by the container nor by its image');
  return commandLine.map((text) => passable(text, /\0/, 'command'));
}

/**
 * The environment of a container: `defaults`, overridden by the image, overridden by the container.
 * @throws `InvalidArgument` for names and values that no environment can contain.
 */
export function environmentOf(
  config: ContainerConfig,
  image: ImageConfig,
  defaults: Iterable<readonly [string, string]>,
): Map<string, string> {
  const env = new Map<string, string>(defaults);
  for (const entry of image.env ?? []) env.set(entry.split('=', 1)[0] ?? '', entry.slice(entry.indexOf('=') + 1));
  for (const { name, value } of config.env ?? [])
    env.set(passable(name, /^$|[=\0]/, 'environment name'), passable(value, /\0/, `value of ${name}`));
  return env;
}

/**
 * Absolute path of a container's log; undefined for a container without one.
 * @throws `InvalidArgument` when the path is not below the directory.
 */
export function logPathOf(directory: string | undefined, path: string | undefined): string | undefined {
  if (directory === undefined || path === undefined || path === '') return undefined;
  const full = normalize(join(directory, path));
  if (!full.startsWith(`${normalize(directory).replace(/\/$/, '')}/`)) {
    throw new RuntimeError('InvalidArgument', `log path is not below the log directory: "${path}"`);
  }
  return full;
}

const numbers: Readonly<Record<string, number>> = constants.signals;

/** Number of `SIGTERM`, `TERM`, `15` or `SIGRTMIN+3`. @throws `InvalidArgument` */
export function signalNumber(text: string): number {
  const name = text.trim().toUpperCase();
  if (/^\d+$/.test(name) && Number(name) >= 1 && Number(name) <= 64) return Number(name);
  const full = name.startsWith('SIG') ? name : `SIG${name}`;
  const realTime = /^SIGRTMIN(?:\+(\d+))?$/.exec(full);
  const number =
    realTime === null ? (Object.hasOwn(numbers, full) ? numbers[full] : undefined) : 34 + Number(realTime[1] ?? 0);
  if (number === undefined || number > 64) throw new RuntimeError('InvalidArgument', `invalid signal "${text}"`);
  return number;
}

/** Name of a signal number, such as `SIGTERM`; undefined for numbers without a name. */
export function signalName(number: number): string | undefined {
  return Object.entries(numbers).find(([, value]) => value === number)?.[0];
}

/** Folder in which a container is prepared, until it is renamed to its final path. */
export function stagingPath({ state }: ContainerContext, id: string): string {
  return join(state.containers, `.new-${id}`);
}

/** Creates the folder at {@link stagingPath}. */
export async function stagingFolder(around: ContainerContext, id: string): Promise<string> {
  const folder = stagingPath(around, id);
  await mkdir(folder, { mode: 0o700 });
  return folder;
}

/** Creates the record and the pipes of a container in its staging folder, and renames it to its final path. */
export async function prepareContainer(
  around: ContainerContext,
  record: ContainerRecord,
  folder: string,
): Promise<void> {
  await writeFile(join(folder, 'record.json'), JSON.stringify(record), { mode: 0o600 });
  // The name of the terminal is written to this file once the process has a terminal.
  if (record.config.tty) await writeFile(join(folder, 'terminal'), '', { mode: 0o600 });
  const pipes = ['stdout', 'stderr', 'done', ...(record.config.stdin || record.config.tty ? ['stdin'] : [])].map(
    (name) => join(folder, name),
  );
  const problem = await tryTool('mkfifo', ['--mode=600', '--', ...pipes]);
  if (problem !== undefined) throw new RuntimeError('Internal', `cannot create pipes: ${problem}`);
  // A process of another user that opens /dev/stdout needs access to the pipe. The folder restricts other processes.
  await Promise.all(pipes.filter((path) => !path.endsWith('done')).map((path) => chmod(path, 0o666)));
  await rename(folder, around.state.container(record.id));
}

/** Starts the monitor of a container, detached from this process. The monitor runs the command. */
export function spawnMonitor(
  { state }: ContainerContext,
  id: string,
  command: readonly string[],
  onError: (error: Error) => void,
): void {
  const args = [state.monitor, state.run, id, state.container(id), ...command];
  const child = spawn('/bin/sh', args, { detached: true, stdio: 'ignore', cwd: '/', env: { PATH: toolPath } });
  child.on('error', onError);
  child.unref();
}

/** Whether the programs that give a process a terminal are installed and work; tested by running them. */
export async function terminalsWork(): Promise<boolean> {
  if (!['script', 'stty', 'tty'].every((name) => findTool(name) !== undefined)) return false;
  const [, ...args] = withTerminal(['tty']);
  return (await tryTool('script', args)) === undefined;
}

/** Quotes a text as one word of a POSIX shell. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/**
 * The command line that runs `command` in a new session with its own terminal, and exits with the code of `command`.
 * Its standard streams are the other side of the terminal; the end of its input is sent to the terminal as a character.
 */
export function withTerminal(command: readonly string[]): string[] {
  // `script` runs the command in a shell, and its typescript is discarded.
  return [tool('script'), '-q', '-e', '-f', '-c', `exec ${command.map(quote).join(' ')}`, '/dev/null'];
}

/**
 * Returns a function that sets the size of the terminal whose name, such as `/dev/pts/3`, is the content of `file`. The
 * kernel then sends SIGWINCH to the foreground processes. While one change is running, only the latest size is
 * retained. A missing terminal is not an error.
 */
export function terminalResizer(file: string): (size: TerminalSize) => void {
  let next: TerminalSize | undefined;
  let busy = false;
  const work = async () => {
    busy = true;
    for (let size = next; size !== undefined; size = next) {
      next = undefined;
      const name = (await readFile(file, 'utf8').catch(() => '')).trim();
      if (!name.startsWith('/dev/')) continue;
      await tryTool('stty', ['-F', name, 'rows', String(size.height), 'cols', String(size.width)]);
    }
    busy = false;
  };
  return (size) => {
    next = size;
    if (!busy) void work();
  };
}
