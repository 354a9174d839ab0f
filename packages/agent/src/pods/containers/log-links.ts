import { mkdir, readdir, readlink, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Logger } from '@keelson/core/runtime';
import type { Container, Pod } from '@keelson/kinds';
import type { AgentPaths } from '../../base/agent-paths.ts';
import { uidOf } from '../../base/pod/pod-spec.ts';

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
