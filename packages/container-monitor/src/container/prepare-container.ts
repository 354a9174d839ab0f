import { spawn } from 'node:child_process';
import { chmod, mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { toolPath, tryTool } from '@keelson/container-host';
import { RuntimeError } from '@keelson/container-runtime';
import type { ContainerRecord } from '../state/records.ts';
import type { ContainerContext } from './container-context.ts';

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
  // Contains the name of the terminal once the process has one.
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
