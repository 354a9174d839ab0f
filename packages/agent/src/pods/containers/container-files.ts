import { rm } from 'node:fs/promises';
import type { CallOptions, ContainerRuntime, ContainerStatus } from '@keelson/container-runtime';
import type { AgentPaths } from '../../base/agent-paths.ts';
import { rotatedLogs } from '../../machine/logs/log-files.ts';
import { removeLogLinks } from './log-links.ts';

/** Removes a container from the runtime, with its logs, the link to the log and its termination message. */
export async function removeContainer(
  uid: string,
  { id, metadata, logPath }: ContainerStatus,
  paths: AgentPaths,
  runtime: ContainerRuntime,
  call: CallOptions,
): Promise<void> {
  await runtime.removeContainer(id, call);
  await rm(paths.messageFile(uid, metadata.name, metadata.attempt), { force: true });
  // A runtime with another log directory removes its logs itself.
  if (logPath === undefined || !logPath.startsWith(`${paths.podLogs(uid)}/`)) return;
  for (const file of [logPath, ...(await rotatedLogs(logPath))]) await rm(file, { force: true });
  await removeLogLinks(paths, (target) => target === logPath);
}

/** Removes the logs of a pod, with the links to them. */
export async function removePodLogs(uid: string, paths: AgentPaths): Promise<void> {
  const directory = paths.podLogs(uid);
  await rm(directory, { recursive: true, force: true });
  await removeLogLinks(paths, (target) => target.startsWith(`${directory}/`));
}
