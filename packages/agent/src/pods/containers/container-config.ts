import { join } from 'node:path';
import type {
  ContainerSecurityContext,
  LinuxResources,
  NamespaceOptions,
  SecurityProfile,
} from '@keelson/container-runtime';
import { quantityMilliValue, quantityValue } from '@keelson/core';
import { type Container, type coreV1, type Pod, qosClassOf } from '@keelson/kinds';
import { ContainerConfigError } from '../environment/container-environment.ts';

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

/** Annotations that specified profiles before the fields existed; old manifests still contain them. */
const podAnnotation = 'seccomp.security.alpha.kubernetes.io/pod';
const containerAnnotation = 'container.seccomp.security.alpha.kubernetes.io/';

/**
 * The seccomp profile of a container. Settings of the container override those of the pod, and a field overrides an
 * annotation. Undefined when none is set.
 *
 * @throws ContainerConfigError for a profile without a name, or one that is not below --seccomp-profile-root
 */
export function seccompOf(pod: Pod, container: Container, root: string): SecurityProfile | undefined {
  const field = container.securityContext?.seccompProfile ?? undefined;
  const { annotations = {} } = pod.metadata ?? {};
  const word = annotations[`${containerAnnotation}${container.name}`];
  if (field !== undefined) return ofField(field, root);
  if (word !== undefined) return ofAnnotation(word, root);
  const common = pod.spec.securityContext?.seccompProfile ?? undefined;
  const commonWord = annotations[podAnnotation];
  if (common !== undefined) return ofField(common, root);
  return commonWord === undefined ? undefined : ofAnnotation(commonWord, root);
}

function ofField({ type, localhostProfile }: coreV1.SeccompProfile, root: string): SecurityProfile {
  if (type === 'Localhost') return localhost(localhostProfile ?? '', root);
  if (type === 'RuntimeDefault' || type === 'Unconfined')
    return { type: type === 'Unconfined' ? 'unconfined' : 'runtimeDefault' };
  throw new ContainerConfigError(`seccomp profile of unknown type "${type}"`);
}

function ofAnnotation(word: string, root: string): SecurityProfile {
  if (word === 'unconfined') return { type: 'unconfined' };
  if (word === 'runtime/default' || word === 'docker/default') return { type: 'runtimeDefault' };
  if (word.startsWith('localhost/')) return localhost(word.slice('localhost/'.length), root);
  throw new ContainerConfigError(`unknown seccomp profile "${word}"`);
}

function localhost(name: string, root: string): SecurityProfile {
  const parts = name.split('/');
  if (name === '' || name.startsWith('/') || parts.includes('..')) {
    throw new ContainerConfigError(
      `seccomp profile "localhost/${name}" must be a file below the directory of profiles`,
    );
  }
  return { type: 'localhost', localhostRef: join(root, name) };
}

const periodUs = 100_000;
const leastShares = 2;
const leastQuotaUs = 1_000;

export interface ResourceFacts {
  /** CPU limits are enforced by CFS quotas. */
  readonly cpuCfsQuota: boolean;
  readonly machineMemoryBytes: number;
}

/** The resource settings of a container, from its requests and limits. */
export function linuxResources(pod: Pod, container: Container, facts: ResourceFacts): LinuxResources {
  const { limits = {}, requests = {} } = container.resources ?? {};
  const cpu = requests['cpu'] ?? limits['cpu'];
  const shares = cpu === undefined ? 0 : Math.floor((Number(quantityMilliValue(cpu)) * 1024) / 1000);
  const cpuLimit = limits['cpu'] === undefined ? 0 : Number(quantityMilliValue(limits['cpu']));
  const memory = limits['memory'] === undefined ? 0 : Number(quantityValue(limits['memory']));
  return {
    cpuShares: Math.max(leastShares, Math.min(262_144, shares)),
    ...(facts.cpuCfsQuota && cpuLimit > 0
      ? { cpuPeriodUs: periodUs, cpuQuotaUs: Math.max(leastQuotaUs, (cpuLimit * periodUs) / 1000) }
      : {}),
    ...(memory > 0 ? { memoryLimitBytes: memory } : {}),
    oomScoreAdjust: oomScore(pod, container, facts.machineMemoryBytes),
  };
}

/** The OOM score adjustment: the larger the share of the host's memory that a container requests, the lower. */
function oomScore(pod: Pod, container: Container, machineMemoryBytes: number): number {
  const qos = qosClassOf(pod.spec);
  if (qos === 'Guaranteed') return -997;
  if (qos === 'BestEffort') return 1000;
  const request = container.resources?.requests?.['memory'];
  const bytes = request === undefined ? 0 : Number(quantityValue(request));
  const score = 1000 - Math.floor((1000 * bytes) / Math.max(1, machineMemoryBytes));
  return Math.min(999, Math.max(3, score));
}
