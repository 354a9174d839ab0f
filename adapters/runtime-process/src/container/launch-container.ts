import { join } from 'node:path';
import { writeAtomically } from '@keelson/container-host';
import { type ContainerContext, spawnMonitor } from '@keelson/container-monitor';
import { launcher, startScript, terminalCommand } from '../launch/start-script.ts';
import type { ProcessRecord } from '../state/records.ts';

function startScriptPath(around: ContainerContext, record: ProcessRecord): string {
  return join(around.state.container(record.id), 'start.sh');
}

/** Writes the start script of a container. The first element of `command` is an absolute path. */
export async function writeStartScript(
  around: ContainerContext,
  record: ProcessRecord,
  command: readonly string[],
): Promise<void> {
  const script = startScript({ ...record.plan, command }, around.state.run, record.id);
  await writeAtomically(startScriptPath(around, record), script, 0o500);
}

/** Starts the monitor, which starts the container. */
export function launchMonitor(around: ContainerContext, record: ProcessRecord, onError: (error: Error) => void): void {
  const { plan, config, id } = record;
  const slave = (config.mounts ?? []).some((mount) => mount.propagation === 'hostToContainer');
  const enter = plan.mountNamespace ? ['unshare', '--mount', `--propagation=${slave ? 'slave' : 'private'}`, '--'] : [];
  const start = [...enter, '/bin/sh', startScriptPath(around, record)];
  const terminal = join(around.state.container(id), 'terminal');
  spawnMonitor(around, id, config.tty ? terminalCommand(plan, terminal, start) : start, onError);
}

/**
 * Returns a function that distinguishes the command lines of the helper programs from that of the command. The helpers
 * execute each other in one process, which executes the command last.
 */
export function helperTest(
  around: ContainerContext,
  record: ProcessRecord,
  command: readonly string[],
): (commandLine: readonly string[]) => boolean {
  const script = startScriptPath(around, record);
  const helpers = launcher(record.plan, command);
  return (commandLine) => {
    if (commandLine[1] === script) return true;
    // The command line of each helper is a suffix of the first one.
    const rest = helpers.slice(Math.max(0, helpers.length - commandLine.length));
    return (
      commandLine.length > command.length &&
      commandLine.length <= helpers.length &&
      rest.every((argument, at) => argument === commandLine[at])
    );
  };
}
