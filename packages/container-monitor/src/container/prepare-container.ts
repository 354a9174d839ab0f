import { spawn } from 'node:child_process';
import { chmod, mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RuntimeError } from '@keelson/container-runtime';
import { tryTool } from '../machine/run-tool.ts';
import { toolPath } from '../machine/tools.ts';
import type { ContainerRecord } from '../state/records.ts';
import type { ContainerContext } from './container-context.ts';

/** Where a container is prepared before it is put into place in one step. */
export function stagingPath({ state }: ContainerContext, id: string): string {
  return join(state.containers, `.new-${id}`);
}

/** Makes the folder at {@link stagingPath}. */
export async function stagingFolder(around: ContainerContext, id: string): Promise<string> {
  const folder = stagingPath(around, id);
  await mkdir(folder, { mode: 0o700 });
  return folder;
}

/** Makes a container's record and pipes in its staging folder, and puts it into place. */
export async function prepareContainer(
  around: ContainerContext,
  record: ContainerRecord,
  folder: string,
): Promise<void> {
  await writeFile(join(folder, 'record.json'), JSON.stringify(record), { mode: 0o600 });
  // Holds the name of the terminal once there is one.
  if (record.config.tty) await writeFile(join(folder, 'terminal'), '', { mode: 0o600 });
  const pipes = ['stdout', 'stderr', 'done', ...(record.config.stdin || record.config.tty ? ['stdin'] : [])].map(
    (name) => join(folder, name),
  );
  const problem = await tryTool('mkfifo', ['--mode=600', '--', ...pipes]);
  if (problem !== undefined) throw new RuntimeError('Internal', `cannot make pipes: ${problem}`);
  // A process that opens /dev/stdout anew is checked against the pipe's own bits; the folder keeps strangers out.
  await Promise.all(pipes.filter((path) => !path.endsWith('done')).map((path) => chmod(path, 0o666)));
  await rename(folder, around.state.container(record.id));
}

/** Starts the monitor of a container, which runs the command. It belongs to nobody. */
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
