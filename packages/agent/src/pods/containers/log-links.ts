import { mkdir, readdir, readlink, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Logger } from '@keelson/core';
import type { Container, Pod } from '@keelson/kinds';
import type { AgentPaths } from '../../base/agent-paths.ts';
import { uidOf } from '../../base/pod/pod-spec.ts';

interface LinkTools {
  readonly paths: AgentPaths;
  readonly logger: Logger;
}

/** Gives the log of a container a name for people and log collectors; its absence hurts nobody else. */
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
    logger.debug('log link was not made', { component: 'agent', link, err });
  }
}

/** Mostly the directory is there and the link is not. */
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
 * The directory of links is shared with other agents of the machine: a link belongs to whoever has the log that it
 * names.
 */
export async function removeLogLinks(paths: AgentPaths, isOurs: (target: string) => boolean): Promise<void> {
  const directory = paths.containerLogs();
  for (const name of await readdir(directory).catch(() => [])) {
    const link = join(directory, name);
    const target = await readlink(link).catch(() => undefined);
    if (target !== undefined && isOurs(target)) await rm(link, { force: true });
  }
}
