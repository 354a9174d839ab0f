import { spawn } from 'node:child_process';
import { chmod, mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RuntimeError } from '@keelson/container-runtime';
import { launcher, startScript } from '../launch/start-script.ts';
import { tryTool } from '../machine/run-tool.ts';
import { toolPath } from '../machine/tools.ts';
import { writeAtomically } from '../state/atomic-file.ts';
import type { ContainerRecord } from '../state/records.ts';
import type { ContainerSurroundings } from './surroundings.ts';

/** Empty folder in which a container is prepared before it is put into place in one step. */
export async function stagingFolder(around: ContainerSurroundings, id: string): Promise<string> {
  const folder = join(around.state.containers, `.new-${id}`);
  await mkdir(folder, { mode: 0o700 });
  return folder;
}

/** Makes a container's record and pipes in its staging folder, and puts it into place. */
export async function prepareContainer(around: ContainerSurroundings, record: ContainerRecord, folder: string): Promise<void> {
  await writeFile(join(folder, 'record.json'), JSON.stringify(record), { mode: 0o600 });
  const pipes = ['stdout', 'stderr', 'done', ...(record.config.stdin ? ['stdin'] : [])].map((name) => join(folder, name));
  const problem = await tryTool('mkfifo', ['--mode=600', '--', ...pipes]);
  if (problem !== undefined) throw new RuntimeError('Internal', `cannot make pipes: ${problem}`);
  // A process that opens /dev/stdout anew is checked against the pipe's own bits; the folder keeps strangers out.
  await Promise.all(pipes.filter((path) => !path.endsWith('done')).map((path) => chmod(path, 0o666)));
  await rename(folder, around.state.container(record.id));
}

function startScriptPath(around: ContainerSurroundings, record: ContainerRecord): string {
  return join(around.state.container(record.id), 'start.sh');
}

/** `command` begins with an absolute path. */
export async function writeStartScript(
  around: ContainerSurroundings,
  record: ContainerRecord,
  command: readonly string[],
): Promise<void> {
  const script = startScript({ ...record.plan, command }, around.state.run, record.id);
  await writeAtomically(startScriptPath(around, record), script, 0o500);
}

/** Starts what watches the container, which starts the container. It belongs to nobody. */
export function spawnMonitor(around: ContainerSurroundings, record: ContainerRecord, onError: (error: Error) => void): void {
  const { plan, config, id } = record;
  const slave = (config.mounts ?? []).some((mount) => mount.propagation === 'hostToContainer');
  const enter = plan.mountNamespace ? ['unshare', '--mount', `--propagation=${slave ? 'slave' : 'private'}`, '--'] : [];
  const script = startScriptPath(around, record);
  const args = [around.state.monitor, around.state.run, id, around.state.container(id), ...enter, '/bin/sh', script];
  const child = spawn('/bin/sh', args, { detached: true, stdio: 'ignore', cwd: '/', env: { PATH: toolPath } });
  child.on('error', onError);
  child.unref();
}

/** A test that tells the command lines of our helpers, which execute one another, from that of the command at their end. */
export function helperTest(
  around: ContainerSurroundings,
  record: ContainerRecord,
  command: readonly string[],
): (commandLine: readonly string[]) => boolean {
  const script = startScriptPath(around, record);
  const words = launcher(record.plan, command);
  return (commandLine) => {
    if (commandLine[1] === script) return true;
    // Each helper's arguments are the end of the first one's.
    const rest = words.slice(Math.max(0, words.length - commandLine.length));
    return (
      commandLine.length > command.length &&
      commandLine.length <= words.length &&
      rest.every((word, at) => word === commandLine[at])
    );
  };
}
