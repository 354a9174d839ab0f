import type { ContainerSecurityContext, NamespaceOptions, SecurityProfile } from '@keelson/container-runtime';
import type { Container, coreV1, Pod } from '@keelson/kinds';
import { seccompOf } from './seccomp.ts';

export interface SecurityFacts {
  /** Without being asked, containers have a PID namespace of their own. */
  readonly isolatePids: boolean;
  readonly seccompRoot: string;
}

export function namespacesOf(pod: Pod, { isolatePids }: SecurityFacts): NamespaceOptions {
  const { hostNetwork, hostPID, hostIPC, shareProcessNamespace } = pod.spec;
  const shared = shareProcessNamespace ?? !isolatePids;
  return {
    network: hostNetwork === true ? 'node' : 'pod',
    pid: hostPID === true ? 'node' : shared ? 'pod' : 'container',
    ipc: hostIPC === true ? 'node' : 'pod',
  };
}

/** User of the container as far as the specification says; undefined = the image decides. */
export function userOf(pod: Pod, container: Container): number | undefined {
  return container.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser ?? undefined;
}

export function mustNotBeRoot(pod: Pod, container: Container): boolean {
  return (container.securityContext?.runAsNonRoot ?? pod.spec.securityContext?.runAsNonRoot) === true;
}

/** Settings of the pod under those of the container. @throws ContainerConfigError */
export function containerSecurity(pod: Pod, container: Container, facts: SecurityFacts): ContainerSecurityContext {
  const own = container.securityContext ?? {};
  const common = pod.spec.securityContext ?? {};
  const runAsUser = userOf(pod, container);
  const runAsGroup = own.runAsGroup ?? common.runAsGroup;
  const groups = [
    ...(common.supplementalGroups ?? []),
    ...(typeof common.fsGroup === 'number' ? [common.fsGroup] : []),
  ];
  const seccomp = seccompOf(pod, container, facts.seccompRoot);
  const apparmor = apparmorOf(own.appArmorProfile ?? common.appArmorProfile);
  const selinux = own.seLinuxOptions ?? common.seLinuxOptions;
  const { add, drop } = own.capabilities ?? {};
  return {
    namespaces: namespacesOf(pod, facts),
    ...(own.privileged === true ? { privileged: true } : {}),
    ...(typeof runAsUser === 'number' ? { runAsUser } : {}),
    ...(typeof runAsGroup === 'number' ? { runAsGroup } : {}),
    ...(groups.length > 0 ? { supplementalGroups: groups } : {}),
    ...(own.readOnlyRootFilesystem === true ? { readonlyRootfs: true } : {}),
    ...(own.allowPrivilegeEscalation === false ? { noNewPrivileges: true } : {}),
    ...(add?.length || drop?.length ? { capabilities: { add: add ?? [], drop: drop ?? [] } } : {}),
    ...(seccomp === undefined ? {} : { seccomp }),
    ...(apparmor === undefined ? {} : { apparmor }),
    ...(selinux === undefined ? {} : { selinux: { ...selinux } }),
  };
}

function apparmorOf(wanted: coreV1.AppArmorProfile | null | undefined): SecurityProfile | undefined {
  if (!wanted) return undefined;
  if (wanted.type === 'Localhost') return { type: 'localhost', localhostRef: wanted.localhostProfile ?? '' };
  return { type: wanted.type === 'RuntimeDefault' ? 'runtimeDefault' : 'unconfined' };
}
