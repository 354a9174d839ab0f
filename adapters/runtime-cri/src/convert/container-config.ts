import { posix } from 'node:path';
import { type ContainerConfig, type NamespaceOptions, RuntimeError } from '@keelson/container-runtime';
import { type ContainerConfigMessage, MountPropagation } from '../api/container.ts';
import type { Fields } from '../wire/message.ts';
import { recordOf } from './is-record.ts';
import { containerNote, type TextMap, withNote } from './notes.ts';
import { toResources } from './resources.ts';
import { toSecurityContext } from './security.ts';

/** What a container's note says. */
export interface ContainerNote {
  /** As in the configuration: daemons answer with another name of the same image. */
  readonly image?: string;
  readonly stopSignal?: string;
}

export interface SandboxFacts {
  readonly namespaces: NamespaceOptions;
  readonly unifiedCgroups: boolean;
}

/** @throws `InvalidArgument` */
export function toContainerMessage(
  config: ContainerConfig,
  sandbox: SandboxFacts,
): Fields<typeof ContainerConfigMessage> {
  check(config);
  const { image, stopSignal, resources = {}, securityContext = {} } = config;
  const note: ContainerNote = { image, ...(stopSignal !== undefined && { stopSignal }) };
  return {
    metadata: config.metadata,
    image: { image },
    command: config.command,
    args: config.args,
    workingDir: config.workingDir,
    envs: config.env?.map(({ name, value }) => ({ key: name, value })),
    mounts: config.mounts?.map(({ propagation = 'private', ...mount }) => ({
      ...mount,
      propagation: MountPropagation[propagation],
    })),
    devices: config.devices,
    labels: config.labels,
    annotations: withNote(config.annotations, containerNote, JSON.stringify(note)),
    logPath: config.logPath,
    stdin: config.stdin,
    stdinOnce: config.stdinOnce,
    tty: config.tty,
    linux: {
      resources: toResources(resources, sandbox.unifiedCgroups),
      securityContext: toSecurityContext(securityContext, sandbox.namespaces),
    },
  };
}

export function noteOf(annotations: TextMap | undefined): ContainerNote {
  const { image, stopSignal } = recordOf(annotations?.[containerNote]);
  return { ...(typeof image === 'string' && { image }), ...(typeof stopSignal === 'string' && { stopSignal }) };
}

/** Daemons take what no process can have, or what leads out of the log folder, and fail late or not at all. */
function check({ env = [], logPath }: ContainerConfig): void {
  for (const { name, value } of env) {
    if (name === '' || /[=\0]/.test(name) || value.includes('\0'))
      throw new RuntimeError('InvalidArgument', `no process can have this environment variable: "${name}"`);
  }
  if (logPath === undefined) return;
  const inside = posix.normalize(logPath);
  if (posix.isAbsolute(logPath) || inside === '..' || inside.startsWith('../'))
    throw new RuntimeError('InvalidArgument', `the log path leads out of the log directory: "${logPath}"`);
}
