import { realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { AgentConfig, ProcessTable, RuntimeChoice } from '@keelson/agent';
import { findRunning } from '../supervisor/running-record.ts';
import { supervisorPlace } from '../supervisor/supervisor-place.ts';

/** The socket of the runtime's daemon; undefined when the runtime is a part of the agent or of its supervisor. */
function endpointOf(choice: RuntimeChoice, runtimeName: string): string | undefined {
  if (choice.kind === 'engine' || choice.kind === 'cri') return choice.endpoint;
  return choice.kind === 'default' && runtimeName === 'engine' ? choice.engineEndpoint : undefined;
}

/** The kernel shows the path that the daemon named, which may lead through a link such as `/var/run`. */
async function pathsOf(endpoint: string): Promise<string[]> {
  const path = endpoint.replace(/^unix:\/\//, '');
  const folder = await realpath(dirname(path)).catch(() => dirname(path));
  return [path, join(folder, basename(path))];
}

/** Why --runtime-cgroups means nothing here; undefined where there is a process to place. */
export function withoutRuntimeProcess(
  { cgroups }: AgentConfig,
  choice: RuntimeChoice,
  runtimeName: string,
): string | undefined {
  const supervised = choice.kind === 'oci' && choice.supervisorEndpoint !== undefined;
  if (cgroups.runtimeGroup === '' || supervised || endpointOf(choice, runtimeName) !== undefined) return undefined;
  return `--runtime-cgroups means nothing with the runtime ${runtimeName}, which is a part of the agent: --agent-cgroups places it`;
}

/** The process that runs the containers, as far as it is not the agent's own; undefined when it is not there now. */
export async function runtimeProcess(
  config: Pick<AgentConfig, 'rootDir' | 'runtime'>,
  runtimeName: string,
  processes: ProcessTable,
): Promise<number | undefined> {
  const endpoint = endpointOf(config.runtime, runtimeName);
  if (endpoint !== undefined) return processes.listenerAt(await pathsOf(endpoint));
  return (await findRunning(supervisorPlace(config.rootDir)))?.pid;
}
