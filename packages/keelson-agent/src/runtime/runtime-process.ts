import { realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { AgentConfig, ProcessTable } from '@keelson/agent';
import { findRunning } from '../supervisor/running-record.ts';
import { supervisorPlace } from '../supervisor/supervisor-place.ts';
import type { OpenedRuntime } from './open-runtime.ts';

type RuntimeLocation = Pick<OpenedRuntime, 'endpoint' | 'supervised'>;

/**
 * Possible paths of a daemon's socket in the kernel's table of sockets. The table has the path that the daemon passed
 * to `bind`, which may contain a link such as `/var/run`.
 */
async function pathsOf(endpoint: string): Promise<string[]> {
  const path = endpoint.replace(/^unix:\/\//, '');
  const folder = await realpath(dirname(path)).catch(() => dirname(path));
  return [path, join(folder, basename(path))];
}

/** The warning that --runtime-cgroups has no effect; undefined when it is not set or the runtime has a process. */
export function runtimeCgroupWarning(
  { cgroups }: Pick<AgentConfig, 'cgroups'>,
  { endpoint, supervised }: RuntimeLocation,
  runtimeName: string,
): string | undefined {
  if (cgroups.runtimeGroup === '' || supervised || endpoint !== undefined) return undefined;
  return (
    `--runtime-cgroups has no effect with the runtime ${runtimeName}, which is part of the agent's process: ` +
    '--agent-cgroups sets its cgroup'
  );
}

/** The process that runs the containers; undefined when it is the agent's own process or does not exist now. */
export async function runtimeProcess(
  { endpoint, supervised }: RuntimeLocation,
  rootDir: string,
  processes: ProcessTable,
): Promise<number | undefined> {
  if (endpoint !== undefined) return processes.listenerAt(await pathsOf(endpoint));
  return supervised ? (await findRunning(supervisorPlace(rootDir)))?.pid : undefined;
}
