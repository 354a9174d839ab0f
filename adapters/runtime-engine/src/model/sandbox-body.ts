import type { NamespaceOptions, PodSandboxConfig, PortMapping } from '@keelson/container-runtime';
import { hostResources } from './resources.ts';

export interface SandboxBodyInput {
  readonly image: string;
  readonly config: PodSandboxConfig;
  readonly namespaces: NamespaceOptions;
  readonly labels: Readonly<Record<string, string>>;
  /** A network plugin connects the sandbox, so the engine creates an empty network namespace. */
  readonly noNetwork: boolean;
  readonly cgroupParent: string | undefined;
}

/** The body of the request that creates a sandbox: a waiting container whose namespaces the pod's containers join. */
export function sandboxBody({ image, config, namespaces, labels, noNetwork, cgroupParent }: SandboxBodyInput): object {
  const { hostname, sysctls = {}, securityContext = {}, resources = {} } = config;
  const {
    runAsUser,
    runAsGroup,
    supplementalGroups = [],
    privileged = false,
    readonlyRootfs = false,
  } = securityContext;
  const onHost = namespaces.network === 'node';
  const ports = onHost || noNetwork ? [] : (config.portMappings ?? []).filter(({ hostPort = 0 }) => hostPort > 0);
  return {
    Image: image,
    Labels: labels,
    ...(hostname !== undefined && hostname !== '' && !onHost && { Hostname: hostname }),
    ...(runAsUser !== undefined && { User: runAsGroup === undefined ? `${runAsUser}` : `${runAsUser}:${runAsGroup}` }),
    ...(ports.length > 0 && { ExposedPorts: Object.fromEntries(ports.map((port) => [portKey(port), {}])) }),
    HostConfig: {
      NetworkMode: onHost ? 'host' : noNetwork ? 'none' : 'bridge',
      IpcMode: namespaces.ipc === 'node' ? 'host' : 'shareable',
      ...(namespaces.pid === 'node' && { PidMode: 'host' }),
      ...(cgroupParent !== undefined && { CgroupParent: cgroupParent }),
      ...(supplementalGroups.length > 0 && { GroupAdd: supplementalGroups.map(String) }),
      ...(Object.keys(sysctls).length > 0 && { Sysctls: sysctls }),
      ...(ports.length > 0 && { PortBindings: portBindings(ports) }),
      Privileged: privileged,
      ReadonlyRootfs: readonlyRootfs,
      RestartPolicy: { Name: '' },
      ...hostResources(resources),
    },
  };
}

const portKey = ({ containerPort, protocol }: PortMapping) => `${containerPort}/${protocol.toLowerCase()}`;

function portBindings(ports: readonly PortMapping[]): Record<string, { HostIp: string; HostPort: string }[]> {
  const bindings: Record<string, { HostIp: string; HostPort: string }[]> = {};
  for (const port of ports) {
    const binding = { HostIp: port.hostIp ?? '', HostPort: String(port.hostPort) };
    bindings[portKey(port)] = [...(bindings[portKey(port)] ?? []), binding];
  }
  return bindings;
}
