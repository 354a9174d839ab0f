import {
  type ContainerConfig,
  type ContainerSecurityContext,
  type Device,
  type DnsConfig,
  type Mount,
  type PodSandboxConfig,
  type PortMapping,
  RuntimeError,
  type SandboxMetadata,
  type SandboxSecurityContext,
  type SecurityProfile,
} from '@keelson/container-runtime';
import type { SecurityProfileMessage } from '../api/common.ts';
import {
  type ContainerConfigMessage,
  type LinuxContainerSecurityContext,
  type MountMessage,
  MountPropagation,
} from '../api/container.ts';
import { Protocol } from '../api/sandbox.ts';
import { fromNamespaces, fromResources, ownDataOf, type SandboxMessage } from '../convert/to-cri.ts';
import type { Fields } from '../wire/message.ts';

const protocols = new Map<number, PortMapping['protocol']>(
  Object.entries(Protocol).map(([name, number]) => [number, name as PortMapping['protocol']]),
);

/** Converts the sandbox configuration of a client. @throws `InvalidArgument` */
export function fromSandboxMessage(message: SandboxMessage): PodSandboxConfig {
  const { hostname, logDirectory, dnsConfig, portMappings, labels, annotations, linux = {} } = message;
  const dns = dnsConfig && dnsOf(dnsConfig);
  return {
    metadata: metadataOf(message),
    ...(hostname && { hostname }),
    ...(logDirectory && { logDirectory }),
    ...(dns && { dns }),
    ...(portMappings && { portMappings: portMappings.map(portOf) }),
    ...(labels && { labels }),
    ...(annotations && { annotations }),
    ...(linux.cgroupParent && { cgroupParent: linux.cgroupParent }),
    ...(linux.sysctls && { sysctls: linux.sysctls }),
    securityContext: securityOf(linux.securityContext ?? {}),
    ...(linux.resources && { resources: fromResources(linux.resources) }),
  };
}

function metadataOf({ metadata }: SandboxMessage): SandboxMetadata {
  const { name = '', namespace = '', uid = '', attempt = 0 } = metadata ?? {};
  if (name === '' || namespace === '' || uid === '')
    throw new RuntimeError('InvalidArgument', 'the metadata of a sandbox must contain a name, a namespace and a uid');
  return { name, namespace, uid, attempt };
}

/** An empty configuration counts as absent: the pod then uses the configuration of the machine. */
function dnsOf({
  servers = [],
  searches = [],
  options = [],
}: NonNullable<SandboxMessage['dnsConfig']>): DnsConfig | undefined {
  return servers.length + searches.length + options.length === 0 ? undefined : { servers, searches, options };
}

function portOf(port: NonNullable<SandboxMessage['portMappings']>[number]): PortMapping {
  const protocol = protocols.get(port.protocol ?? 0);
  if (protocol === undefined) throw new RuntimeError('InvalidArgument', `unknown protocol of a port: ${port.protocol}`);
  return {
    protocol,
    containerPort: port.containerPort ?? 0,
    ...(port.hostPort && { hostPort: port.hostPort }),
    ...(port.hostIp && { hostIp: port.hostIp }),
  };
}

type SecurityMessage = NonNullable<NonNullable<SandboxMessage['linux']>['securityContext']>;

/** Absent namespace options select the namespaces of the pod, as CRI defines, and not the default of the engine. */
function securityOf(message: SecurityMessage): SandboxSecurityContext {
  const { namespaceOptions, runAsUser, runAsGroup, supplementalGroups, privileged, readonlyRootfs } = message;
  rejectLoneGroup(runAsUser !== undefined, runAsGroup);
  return {
    namespaces: fromNamespaces(namespaceOptions ?? {}),
    ...(runAsUser && { runAsUser: runAsUser.value ?? 0 }),
    ...(runAsGroup && { runAsGroup: runAsGroup.value ?? 0 }),
    ...(supplementalGroups && { supplementalGroups }),
    ...(privileged && { privileged }),
    ...(readonlyRootfs && { readonlyRootfs }),
  };
}

type ConfigMessage = Fields<typeof ContainerConfigMessage>;

const propagations = new Map<number, NonNullable<Mount['propagation']>>(
  Object.entries(MountPropagation).map(([name, number]) => [number, name as NonNullable<Mount['propagation']>]),
);

/** Converts the container configuration of a client. @throws `InvalidArgument` */
export function fromContainerMessage(message: ConfigMessage): ContainerConfig {
  const { name = '', attempt = 0 } = message.metadata ?? {};
  if (name === '') throw new RuntimeError('InvalidArgument', 'the metadata of a container must contain a name');
  const image = message.image?.image ?? '';
  if (image === '') throw new RuntimeError('InvalidArgument', 'the configuration of a container must contain an image');
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
  // CRI has no field for the stop signal; the client of this package sends it in an annotation.
  const { stopSignal } = ownDataOf(annotations);
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

const profileTypes = ['runtimeDefault', 'unconfined', 'localhost'] as const;

/**
 * Converts the security settings of a client. The protocol does not distinguish an empty list of paths from an absent
 * one: in both cases the default paths of the engine apply.
 * @throws `InvalidArgument`
 */
export function fromSecurityContext(message: Fields<typeof LinuxContainerSecurityContext>): ContainerSecurityContext {
  const { capabilities, namespaceOptions, runAsUser, runAsUsername, runAsGroup, supplementalGroups, selinuxOptions } =
    message;
  const seccomp = profileOf(message.seccomp, message.seccompProfilePath);
  const apparmor = profileOf(message.apparmor, message.apparmorProfile);
  rejectLoneGroup(runAsUser !== undefined || Boolean(runAsUsername), runAsGroup);
  const { maskedPaths = [], readonlyPaths = [] } = message;
  const { addCapabilities = [], dropCapabilities = [] } = capabilities ?? {};
  return {
    ...(message.privileged && { privileged: true }),
    ...(runAsUser && { runAsUser: runAsUser.value ?? 0 }),
    ...(runAsUsername && { runAsUsername }),
    ...(runAsGroup && { runAsGroup: runAsGroup.value ?? 0 }),
    ...(supplementalGroups && { supplementalGroups }),
    ...(message.readonlyRootfs && { readonlyRootfs: true }),
    ...(message.noNewPrivs && { noNewPrivileges: true }),
    ...(capabilities && { capabilities: { add: addCapabilities, drop: dropCapabilities } }),
    ...(namespaceOptions && { namespaces: fromNamespaces(namespaceOptions) }),
    ...(seccomp && { seccomp }),
    ...(apparmor && { apparmor }),
    ...(maskedPaths.length > 0 && { maskedPaths: absolute(maskedPaths) }),
    ...(readonlyPaths.length > 0 && { readonlyPaths: absolute(readonlyPaths) }),
    ...(selinuxOptions && { selinux: present(selinuxOptions) }),
  };
}

/** Rejects a group without a user, as the protocol requires. @throws `InvalidArgument` */
export function rejectLoneGroup(hasUser: boolean, group: { readonly value?: number | undefined } | undefined): void {
  if (group !== undefined && !hasUser)
    throw new RuntimeError('InvalidArgument', `user group "${group.value ?? 0}" is specified without user`);
}

function absolute(paths: readonly string[]): readonly string[] {
  const relative = paths.find((path) => !path.startsWith('/'));
  if (relative !== undefined)
    throw new RuntimeError('InvalidArgument', `a protected path must be absolute, not "${relative}"`);
  return paths;
}

/** Converts the structured form of a profile or, if absent, the older text form. */
function profileOf(
  message: Fields<typeof SecurityProfileMessage> | undefined,
  path: string | undefined,
): SecurityProfile | undefined {
  if (message !== undefined) {
    const type = profileTypes[message.profileType ?? 0];
    if (type === undefined)
      throw new RuntimeError('InvalidArgument', `unknown type of a security profile: ${message.profileType}`);
    return { type, ...(message.localhostRef && { localhostRef: message.localhostRef }) };
  }
  if (path === undefined || path === '') return undefined;
  if (path === 'unconfined') return { type: 'unconfined' };
  if (path === 'runtime/default' || path === 'docker/default') return { type: 'runtimeDefault' };
  const localhostRef = /^localhost\/(.+)$/.exec(path)?.[1];
  if (localhostRef === undefined) throw new RuntimeError('InvalidArgument', `unknown security profile: "${path}"`);
  return { type: 'localhost', localhostRef };
}

type Selinux = NonNullable<ContainerSecurityContext['selinux']>;

function present(fields: { readonly [K in keyof Selinux]: Selinux[K] | undefined }): Selinux {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== ''));
}
