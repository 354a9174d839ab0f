import type { DnsConfig, PodSandboxConfig, PortMapping } from '@keelson/container-runtime';
import type { Pod } from '@keelson/kinds';
import { allContainersOf } from '../../base/pod/pod-spec.ts';
import { podLabels } from '../../runtime-view/runtime-labels.ts';
import { hostNameOf } from './hosts-file.ts';
import { namespacesOf, type SecurityFacts } from './security.ts';

export interface SandboxFacts extends SecurityFacts {
  readonly logDirectory: string;
  readonly dns: DnsConfig;
  /** Undefined: the default of the runtime. */
  readonly cgroupParent?: string | undefined;
}

/** The configuration of a pod's sandbox for its runtime. */
export function sandboxConfig(pod: Pod, attempt: number, facts: SandboxFacts): PodSandboxConfig {
  const { name = '', namespace = '', uid = '', annotations } = pod.metadata ?? {};
  const security = pod.spec.securityContext ?? {};
  const hostNetwork = pod.spec.hostNetwork === true;
  const sysctls = security.sysctls ?? [];
  const ports = hostNetwork ? [] : portMappings(pod);
  return {
    metadata: { name, namespace, uid, attempt },
    ...(hostNetwork ? {} : { hostname: hostNameOf(pod) }),
    logDirectory: facts.logDirectory,
    dns: facts.dns,
    ...(ports.length > 0 ? { portMappings: ports } : {}),
    labels: podLabels(pod),
    annotations: { ...annotations },
    ...(facts.cgroupParent === undefined ? {} : { cgroupParent: facts.cgroupParent }),
    ...(sysctls.length > 0
      ? { sysctls: Object.fromEntries(sysctls.map((sysctl) => [sysctl.name, sysctl.value])) }
      : {}),
    securityContext: {
      namespaces: namespacesOf(pod, facts),
      ...(allContainersOf(pod).some(({ securityContext }) => securityContext?.privileged === true)
        ? { privileged: true }
        : {}),
    },
  };
}

function portMappings(pod: Pod): PortMapping[] {
  return allContainersOf(pod).flatMap(({ ports }) =>
    (ports ?? [])
      .filter(({ hostPort }) => hostPort)
      .map(({ containerPort, hostPort, hostIP, protocol }) => ({
        protocol: protocol === 'UDP' || protocol === 'SCTP' ? protocol : 'TCP',
        containerPort,
        ...(hostPort === undefined ? {} : { hostPort }),
        ...(hostIP ? { hostIp: hostIP } : {}),
      })),
  );
}
