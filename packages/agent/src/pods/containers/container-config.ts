import { mkdir, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type {
  ContainerSecurityContext,
  LinuxResources,
  Mount,
  NamespaceOptions,
  SecurityProfile,
} from '@keelson/container-runtime';
import { quantityMilliValue, quantityValue } from '@keelson/core';
import { type Container, type coreV1, type Pod, qosClassOf } from '@keelson/kinds';
import type { AgentPaths } from '../../base/agent-paths.ts';
import { uidOf } from '../../base/pod/pod-spec.ts';
import type { VolumePlaces } from '../../machine/volumes/pod-volumes.ts';
import type { SubPaths } from '../../machine/volumes/sub-path.ts';
import { VolumeProblem } from '../../machine/volumes/volume-problem.ts';
import { ContainerConfigError, expand } from '../environment/container-environment.ts';

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

export interface MountFacts {
  readonly paths: AgentPaths;
  readonly volumes: VolumePlaces;
  readonly subPaths: SubPaths;
  readonly variables: ReadonlyMap<string, string>;
  readonly attempt: number;
  /** The runtime supports mounts, so that the agent can add its own. */
  readonly canMount: boolean;
  /** The runtime verifies the source of mounts with `exact`. */
  readonly canMountExactly: boolean;
  /** The runtime can make mounts read-only. */
  readonly readonlyMounts: boolean;
  /** Mount propagation is supported. */
  readonly propagation: boolean;
  /** Contents of the hosts file. */
  readonly hosts: string;
}

export interface ContainerMounts {
  readonly mounts: readonly Mount[];
  /** File of the termination message on the host. */
  readonly messageFile: string | undefined;
  /** Directory on the host with the files of the service account, which the runtime cannot mount at their path. */
  readonly accountDirectory?: string;
}

/** The admission plugin ServiceAccount of the server adds a volume with such a name at this path. */
const accountVolumePrefix = 'kube-api-access-';
const accountPath = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Volumes of a container, with the hosts file and the file of its termination message.
 * @throws ContainerConfigError, VolumeProblem
 */
export async function containerMounts(pod: Pod, container: Container, facts: MountFacts): Promise<ContainerMounts> {
  const mounts: Mount[] = [];
  let accountDirectory: string | undefined;
  const readOnly = new Set((pod.spec.volumes ?? []).filter(isReadOnly).map(({ name }) => name));
  for (const [index, wanted] of (container.volumeMounts ?? []).entries()) {
    const place = facts.volumes.get(wanted.name);
    if (place === undefined)
      throw new ContainerConfigError(`cannot find volume "${wanted.name}" to mount into container "${container.name}"`);
    // Every pod has this volume, also those that do not use it: it must not prevent them from starting.
    if (!facts.canMount && wanted.mountPath === accountPath && wanted.name.startsWith(accountVolumePrefix)) {
      accountDirectory = place;
      continue;
    }
    const within = wanted.subPathExpr
      ? expand(wanted.subPathExpr, (name) => facts.variables.get(name))
      : wanted.subPath;
    const propagation = facts.propagation ? propagationOf(wanted.mountPropagation) : undefined;
    const use = { uid: uidOf(pod), volume: wanted.name, container: container.name, index };
    const source = within ? await facts.subPaths.provide(place, within, use) : { hostPath: place };
    if ('exact' in source && !facts.canMountExactly)
      throw new VolumeProblem(`subPath "${within}" needs a mount, and this node cannot mount`);
    mounts.push({
      containerPath: wanted.mountPath,
      ...source,
      ...(wanted.readOnly === true || (facts.readonlyMounts && readOnly.has(wanted.name)) ? { readonly: true } : {}),
      ...(propagation === undefined ? {} : { propagation }),
    });
  }
  if (container.volumeDevices?.length) throw new ContainerConfigError('block devices are not supported by this agent');
  if (!facts.canMount)
    return { mounts, messageFile: undefined, ...(accountDirectory === undefined ? {} : { accountDirectory }) };
  const taken = new Set(mounts.map(({ containerPath }) => containerPath));
  if (!taken.has('/etc/hosts')) mounts.push({ containerPath: '/etc/hosts', hostPath: await writeHosts(pod, facts) });
  const messageFile = await messageFileOf(pod, container, facts, taken);
  if (messageFile !== undefined && container.terminationMessagePath) {
    mounts.push({ containerPath: container.terminationMessagePath, hostPath: messageFile });
  }
  return { mounts, messageFile };
}

/**
 * The agent keeps such volumes up to date as its own user: a container that could write to them could place links
 * there for it to follow (CVE-2017-1002102). They are read-only, as in kubelet. So are claims that say it.
 */
function isReadOnly({ secret, configMap, downwardAPI, projected, persistentVolumeClaim }: coreV1.Volume): boolean {
  return Boolean(secret ?? configMap ?? downwardAPI ?? projected) || persistentVolumeClaim?.readOnly === true;
}

async function writeHosts(pod: Pod, { paths, hosts }: MountFacts): Promise<string> {
  const file = paths.hostsFile(uidOf(pod));
  try {
    await writeFile(file, hosts, { mode: 0o644 });
  } catch (error) {
    // On a node that does not create volumes the directory may be missing.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    await mkdir(paths.pod(uidOf(pod)), { recursive: true, mode: 0o750 });
    await writeFile(file, hosts, { mode: 0o644 });
  }
  return file;
}

async function messageFileOf(
  pod: Pod,
  container: Container,
  { paths, attempt }: MountFacts,
  taken: ReadonlySet<string>,
): Promise<string | undefined> {
  const path = container.terminationMessagePath;
  if (!path || taken.has(path)) return undefined;
  await mkdir(paths.containers(uidOf(pod)), { recursive: true, mode: 0o750 });
  const file = paths.messageFile(uidOf(pod), container.name, attempt);
  const handle = await open(file, 'w');
  try {
    // The container may run as any user.
    await handle.chmod(0o666);
  } finally {
    await handle.close();
  }
  return file;
}

function propagationOf(mode: string | undefined): Mount['propagation'] {
  return mode === 'HostToContainer' ? 'hostToContainer' : mode === 'Bidirectional' ? 'bidirectional' : undefined;
}
