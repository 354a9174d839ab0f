import { access, readFile } from 'node:fs/promises';
import {
  type ContainerConfig,
  type Mount,
  type NamespaceOptions,
  RuntimeError,
  type SandboxId,
} from '@keelson/container-runtime';
import type { Flavour } from '../api/negotiate.ts';
import { hostResources } from './resources.ts';
import { securityOptions } from './security-options.ts';

export interface ContainerBodyInput {
  readonly flavour: Flavour;
  readonly config: ContainerConfig;
  readonly sandboxId: SandboxId;
  readonly namespaces: NamespaceOptions;
  readonly labels: Readonly<Record<string, string>>;
  /** Host name of the sandbox. */
  readonly hostname: string | undefined;
  readonly cgroupParent: string | undefined;
  /** User in the configuration of the image. */
  readonly imageUser: string | undefined;
}

/** The body of the request that creates a container. @throws `InvalidArgument` */
export async function containerBody(input: ContainerBodyInput): Promise<object> {
  const { flavour, config, sandboxId, namespaces, labels, hostname, cgroupParent } = input;
  const { command, args, workingDir, stdin = false, stdinOnce = false, tty = false, stopSignal, devices = [] } = config;
  const {
    capabilities = {},
    supplementalGroups = [],
    privileged = false,
    readonlyRootfs = false,
  } = config.securityContext ?? {};
  const { maskedPaths, readonlyPaths } = config.securityContext ?? {};
  const user = userOf(config, input.imageUser);
  const joined = `container:${sandboxId}`;
  for (const { hostPath } of config.mounts ?? []) await requirePath(hostPath);
  return {
    Image: config.image,
    Labels: labels,
    // An entry point is never sent without arguments: the engine would add the arguments of the image.
    ...(command !== undefined && command.length > 0 && { Entrypoint: command, Cmd: args ?? [] }),
    ...((command === undefined || command.length === 0) && args !== undefined && args.length > 0 && { Cmd: args }),
    ...(workingDir !== undefined && workingDir !== '' && { WorkingDir: workingDir }),
    ...(stopSignal !== undefined && { StopSignal: stopSignal }),
    ...(user !== undefined && { User: user }),
    // Docker uses the host name of the sandbox and rejects another one; Podman would generate one.
    ...(flavour === 'podman' &&
      hostname !== undefined &&
      hostname !== '' &&
      namespaces.network === 'pod' && { Hostname: hostname }),
    ...{ Env: environment(config), OpenStdin: stdin, StdinOnce: stdinOnce, Tty: tty },
    HostConfig: {
      NetworkMode: joined,
      IpcMode: namespaces.ipc === 'node' ? 'host' : joined,
      ...(namespaces.pid === 'node' && { PidMode: 'host' }),
      ...(namespaces.pid === 'pod' && { PidMode: joined }),
      ...(cgroupParent !== undefined && { CgroupParent: cgroupParent }),
      ...(flavour === 'docker' && maskedPaths && { MaskedPaths: maskedPaths }),
      ...(flavour === 'docker' && readonlyPaths && { ReadonlyPaths: readonlyPaths }),
      ...{ Privileged: privileged, ReadonlyRootfs: readonlyRootfs },
      CapAdd: capabilities.add ?? [],
      CapDrop: capabilities.drop ?? [],
      GroupAdd: supplementalGroups.map(String),
      SecurityOpt: await securityOptions(flavour, config.securityContext ?? {}, (path) => readFile(path, 'utf8')),
      Mounts: (config.mounts ?? []).map(mountBody),
      Devices: devices.map(({ hostPath, containerPath, permissions }) => ({
        ...{ PathOnHost: hostPath, PathInContainer: containerPath, CgroupPermissions: permissions },
      })),
      RestartPolicy: { Name: '' },
      LogConfig: logConfigs[flavour],
      ...hostResources(config.resources ?? {}),
    },
  };
}

/** Rejects a missing mount source, because engines would create a folder at its path. */
async function requirePath(path: string): Promise<void> {
  await access(path).catch((cause: unknown) => {
    throw new RuntimeError('InvalidArgument', `the source of a mount does not exist: ${path}`, { cause });
  });
}

function environment({ env = [] }: ContainerConfig): string[] {
  const last = new Map<string, string>();
  for (const { name, value } of env) {
    if (name === '' || name.includes('=') || name.includes('\0') || value.includes('\0'))
      throw new RuntimeError('InvalidArgument', `invalid name or value of the environment variable "${name}"`);
    last.set(name, value);
  }
  return [...last].map(([name, value]) => `${name}=${value}`);
}

function userOf({ securityContext = {} }: ContainerConfig, imageUser: string | undefined): string | undefined {
  const { runAsUser, runAsUsername, runAsGroup } = securityContext;
  const user = runAsUser?.toString() ?? runAsUsername;
  if (runAsGroup === undefined) return user;
  return `${user ?? (imageUser?.split(':')[0] || '0')}:${runAsGroup}`;
}

/**
 * Log drivers that write files, from which this adapter copies lines. The limits apply to the engine's own copy. Lines
 * are lost only when a container writes more than that while no runtime copies them.
 */
const logConfigs = {
  docker: { Type: 'json-file', Config: { 'max-size': '50m', 'max-file': '2' } },
  podman: { Type: 'k8s-file', Config: { 'max-size': '50m' } },
} as const;

const propagations = { private: 'rprivate', hostToContainer: 'rslave', bidirectional: 'rshared' } as const;

function mountBody({ containerPath, hostPath, readonly = false, propagation = 'private' }: Mount): object {
  return {
    ...{ Type: 'bind', Source: hostPath, Target: containerPath, ReadOnly: readonly },
    BindOptions: { Propagation: propagations[propagation] },
  };
}
