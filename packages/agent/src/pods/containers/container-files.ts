import { rm } from 'node:fs/promises';
import type { CallOptions, ContainerRuntime, ContainerStatus } from '@keelson/container-runtime';
import type { AgentPaths } from '../../base/agent-paths.ts';
import { rotatedLogs } from '../../machine/logs/log-files.ts';
import { removeLogLinks } from './log-links.ts';

/**
 * Takes a container out of the runtime, and what the agent kept for it: its logs, the link to it, its termination
 * message.
 */
export async function removeContainer(
  uid: string,
  { id, metadata, logPath }: ContainerStatus,
  paths: AgentPaths,
  runtime: ContainerRuntime,
  call: CallOptions,
): Promise<void> {
  await runtime.removeContainer(id, call);
  await rm(paths.messageFile(uid, metadata.name, metadata.attempt), { force: true });
  // Logs of runtimes that keep them elsewhere are theirs.
  if (logPath === undefined || !logPath.startsWith(`${paths.podLogs(uid)}/`)) return;
  for (const file of [logPath, ...(await rotatedLogs(logPath))]) await rm(file, { force: true });
  await removeLogLinks(paths, (target) => target === logPath);
}

/** Takes away the logs of a pod, with the links to them. */
export async function removePodLogs(uid: string, paths: AgentPaths): Promise<void> {
  const directory = paths.podLogs(uid);
  await rm(directory, { recursive: true, force: true });
  await removeLogLinks(paths, (target) => target.startsWith(`${directory}/`));
}
