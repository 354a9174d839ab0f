import {
  type DnsConfig,
  type PodSandboxConfig,
  type PortMapping,
  RuntimeError,
  type SandboxMetadata,
  type SandboxSecurityContext,
} from '@keelson/container-runtime';
import { Protocol } from '../../api/sandbox.ts';
import { fromResources } from '../../convert/resources.ts';
import type { SandboxMessage } from '../../convert/sandbox-config.ts';
import { fromNamespaces } from '../../convert/security.ts';
import { refuseLoneGroup } from './security.ts';

const protocols = new Map<number, PortMapping['protocol']>(
  Object.entries(Protocol).map(([name, number]) => [number, name as PortMapping['protocol']]),
);

/** What an outside caller wants a sandbox to be. @throws `InvalidArgument` */
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
    throw new RuntimeError('InvalidArgument', 'a sandbox needs a name, a namespace and a uid in its metadata');
  return { name, namespace, uid, attempt };
}

/** A configuration that says nothing is none: the pod then has that of the machine. */
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

/** What is not said of namespaces is the pod's, so says the protocol; the contract leaves it to the engine. */
function securityOf(message: SecurityMessage): SandboxSecurityContext {
  const { namespaceOptions, runAsUser, runAsGroup, supplementalGroups, privileged, readonlyRootfs } = message;
  refuseLoneGroup(runAsUser !== undefined, runAsGroup);
  return {
    namespaces: fromNamespaces(namespaceOptions ?? {}),
    ...(runAsUser && { runAsUser: runAsUser.value ?? 0 }),
    ...(runAsGroup && { runAsGroup: runAsGroup.value ?? 0 }),
    ...(supplementalGroups && { supplementalGroups }),
    ...(privileged && { privileged }),
    ...(readonlyRootfs && { readonlyRootfs }),
  };
}
