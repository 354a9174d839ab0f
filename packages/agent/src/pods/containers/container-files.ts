import { mkdir, open, readdir, readlink, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { CallOptions, ContainerRuntime, ContainerStatus } from '@keelson/container-runtime';
import type { Logger } from '@keelson/core/runtime';
import type { Container, Pod } from '@keelson/kinds';
import type { AgentPaths } from '../../base/agent-paths.ts';
import { uidOf } from '../../base/pod/pod-spec.ts';
import { rotatedLogs } from '../../machine/logs/log-files.ts';
import { readLog } from '../../machine/logs/read-log.ts';
import { containerNotesOf, type PodRuntimeState } from '../../runtime-view/runtime-objects.ts';

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

/** Removes replaced sandboxes whose containers have been removed. */
export async function removeOldSandboxes(
  state: PodRuntimeState,
  removed: ReadonlySet<string>,
  runtime: ContainerRuntime,
  call: CallOptions,
): Promise<void> {
  for (const sandbox of state.sandboxes.slice(1)) {
    const used = state.containers.some(({ sandboxId, id }) => sandboxId === sandbox.id && !removed.has(id));
    if (sandbox.state === 'notReady' && !used) await runtime.removePodSandbox(sandbox.id, call);
  }
}

/** Removes the logs of a pod, with the links to them. */
export async function removePodLogs(uid: string, paths: AgentPaths): Promise<void> {
  const directory = paths.podLogs(uid);
  await rm(directory, { recursive: true, force: true });
  await removeLogLinks(paths, (target) => target.startsWith(`${directory}/`));
}

interface LinkTools {
  readonly paths: AgentPaths;
  readonly logger: Logger;
}

/** Creates the link by which users and log collectors find the log of a container. A failure is only logged. */
export async function linkLog(
  pod: Pod,
  container: Container,
  id: string,
  logPath: string,
  { paths, logger }: LinkTools,
): Promise<void> {
  const { name = '', namespace = '' } = pod.metadata ?? {};
  const link = join(paths.containerLogs(), `${name}_${namespace}_${container.name}-${id}.log`);
  const target = join(paths.podLogs(uidOf(pod)), logPath);
  try {
    await makeLink(target, link);
  } catch (err) {
    logger.debug('creating the link to a log failed', { component: 'agent', link, err });
  }
}

/** Tries to create the link first, since the directory usually exists. */
async function makeLink(target: string, link: string): Promise<void> {
  try {
    await symlink(target, link);
  } catch {
    await mkdir(dirname(link), { recursive: true });
    await rm(link, { force: true });
    await symlink(target, link);
  }
}

/**
 * Removes links to logs of this agent. The directory of links is shared with other agents of the host: a link belongs
 * to the agent that owns its target.
 */
export async function removeLogLinks(paths: AgentPaths, isOurs: (target: string) => boolean): Promise<void> {
  const directory = paths.containerLogs();
  for (const name of await readdir(directory).catch(() => [])) {
    const link = join(directory, name);
    const target = await readlink(link).catch(() => undefined);
    if (target !== undefined && isOurs(target)) await rm(link, { force: true });
  }
}

const maxFileBytes = 4096;
const maxLogBytes = 2048;
const maxLogLines = 80;

/** Termination messages of ended containers: see docs/reference/agent-rules.md#termination-messages. */
export class TerminationMessages {
  readonly #known = new Map<string, string>();

  /** Reads the messages of containers that have ended since the last call. */
  async load(containers: readonly ContainerStatus[]): Promise<void> {
    for (const status of containers) {
      if (status.state === 'exited' && !this.#known.has(status.id)) this.#known.set(status.id, await read(status));
    }
  }

  /** Undefined when there is none. */
  of(status: ContainerStatus): string | undefined {
    return this.#known.get(status.id) || undefined;
  }

  forget(containers: readonly ContainerStatus[]): void {
    for (const { id } of containers) this.#known.delete(id);
  }
}

async function read(status: ContainerStatus): Promise<string> {
  const { messageFile, messagePolicy } = containerNotesOf(status.annotations);
  const message = messageFile === undefined ? '' : await tail(messageFile, maxFileBytes);
  const failed = status.exitCode !== 0;
  if (message !== '' || messagePolicy !== 'FallbackToLogsOnError' || !failed || status.logPath === undefined)
    return message;
  return endOfLog(status.logPath).catch(() => '');
}

async function endOfLog(path: string): Promise<string> {
  let text = Buffer.alloc(0);
  for await (const part of readLog(path, { tailLines: maxLogLines }))
    text = Buffer.concat([text, part]).subarray(-maxLogBytes);
  return text.toString('utf8');
}

async function tail(path: string, maxBytes: number): Promise<string> {
  try {
    const file = await open(path, 'r');
    try {
      const { size } = await file.stat();
      const length = Math.min(size, maxBytes);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
      return buffer.subarray(0, bytesRead).toString('utf8');
    } finally {
      await file.close();
    }
  } catch {
    return '';
  }
}
