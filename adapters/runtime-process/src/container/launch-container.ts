import { join } from 'node:path';
import { type ContainerContext, spawnMonitor, writeAtomically } from '@keelson/container-monitor';
import { launcher, startScript, terminalWords } from '../launch/start-script.ts';
import type { ProcessRecord } from '../state/records.ts';

function startScriptPath(around: ContainerContext, record: ProcessRecord): string {
  return join(around.state.container(record.id), 'start.sh');
}

/** `command` begins with an absolute path. */
export async function writeStartScript(
  around: ContainerContext,
  record: ProcessRecord,
  command: readonly string[],
): Promise<void> {
  const script = startScript({ ...record.plan, command }, around.state.run, record.id);
  await writeAtomically(startScriptPath(around, record), script, 0o500);
}

/** Starts what watches the container, which starts the container. */
export function launchMonitor(around: ContainerContext, record: ProcessRecord, onError: (error: Error) => void): void {
  const { plan, config, id } = record;
  const slave = (config.mounts ?? []).some((mount) => mount.propagation === 'hostToContainer');
  const enter = plan.mountNamespace ? ['unshare', '--mount', `--propagation=${slave ? 'slave' : 'private'}`, '--'] : [];
  const words = [...enter, '/bin/sh', startScriptPath(around, record)];
  const terminal = join(around.state.container(id), 'terminal');
  spawnMonitor(around, id, config.tty ? terminalWords(plan, terminal, words) : words, onError);
}

/**
 * A test that tells the command lines of our helpers, which execute one another, from that of the command at their end.
 */
export function helperTest(
  around: ContainerContext,
  record: ProcessRecord,
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
