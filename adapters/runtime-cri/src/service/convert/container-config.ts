import { type ContainerConfig, type Device, type Mount, RuntimeError } from '@keelson/container-runtime';
import { type ContainerConfigMessage, type MountMessage, MountPropagation } from '../../api/container.ts';
import { noteOf } from '../../convert/container-config.ts';
import { fromResources } from '../../convert/resources.ts';
import type { Fields } from '../../wire/message.ts';
import { fromSecurityContext } from './security.ts';

type ConfigMessage = Fields<typeof ContainerConfigMessage>;

const propagations = new Map<number, NonNullable<Mount['propagation']>>(
  Object.entries(MountPropagation).map(([name, number]) => [number, name as NonNullable<Mount['propagation']>]),
);

/** What an outside caller wants a container to be. @throws `InvalidArgument` */
export function fromContainerMessage(message: ConfigMessage): ContainerConfig {
  const { name = '', attempt = 0 } = message.metadata ?? {};
  if (name === '') throw new RuntimeError('InvalidArgument', 'a container needs a name in its metadata');
  const image = message.image?.image ?? '';
  if (image === '') throw new RuntimeError('InvalidArgument', 'a container needs an image');
  const {
    command = [],
    args = [],
    workingDir,
    envs,
    mounts,
    devices,
    labels,
    annotations,
    logPath,
    linux = {},
  } = message;
  // The protocol has no field for it; the client of this package leaves a note.
  const { stopSignal } = noteOf(annotations);
  return {
    metadata: { name, attempt },
    image,
    ...(command.length > 0 && { command }),
    ...(args.length > 0 && { args }),
    ...(workingDir && { workingDir }),
    ...(envs && { env: envs.map(({ key = '', value = '' }) => ({ name: key, value })) }),
    ...(mounts && { mounts: mounts.map(mountOf) }),
    ...(devices && { devices: devices.map(deviceOf) }),
    ...(labels && { labels }),
    ...(annotations && { annotations }),
    ...(logPath && { logPath }),
    ...(message.stdin && { stdin: true }),
    ...(message.stdinOnce && { stdinOnce: true }),
    ...(message.tty && { tty: true }),
    ...(stopSignal !== undefined && { stopSignal }),
    ...(linux.resources && { resources: fromResources(linux.resources) }),
    ...(linux.securityContext && { securityContext: fromSecurityContext(linux.securityContext) }),
  };
}

function mountOf(message: Fields<typeof MountMessage>): Mount {
  const propagation = propagations.get(message.propagation ?? 0);
  if (propagation === undefined)
    throw new RuntimeError('InvalidArgument', `unknown propagation of a mount: ${message.propagation}`);
  return {
    containerPath: message.containerPath ?? '',
    hostPath: message.hostPath ?? '',
    ...(message.readonly && { readonly: true }),
    ...(message.selinuxRelabel && { selinuxRelabel: true }),
    ...(propagation !== 'private' && { propagation }),
  };
}

function deviceOf({
  containerPath = '',
  hostPath = '',
  permissions = '',
}: NonNullable<ConfigMessage['devices']>[number]): Device {
  return { containerPath, hostPath, permissions };
}
