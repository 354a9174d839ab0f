import type { ContainerSecurityContext, NamespaceOptions, SecurityProfile } from '@keelson/container-runtime';
import type { Container, coreV1, Pod } from '@keelson/kinds';
import { seccompOf } from './seccomp.ts';

export interface SecurityFacts {
  /** By default containers have their own PID namespace. */
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

/** The user of the container in the specification; undefined = the user of the image. */
export function userOf(pod: Pod, container: Container): number | undefined {
  return container.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser ?? undefined;
}

export function mustNotBeRoot(pod: Pod, container: Container): boolean {
  return (container.securityContext?.runAsNonRoot ?? pod.spec.securityContext?.runAsNonRoot) === true;
}

/** The settings of the container, with those of the pod as defaults. @throws ContainerConfigError */
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
