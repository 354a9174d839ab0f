import { mkdir, open, writeFile } from 'node:fs/promises';
import type { Mount } from '@keelson/container-runtime';
import type { Container, coreV1, Pod } from '@keelson/kinds';
import type { AgentPaths } from '../../base/agent-paths.ts';
import { uidOf } from '../../base/pod/pod-spec.ts';
import type { VolumePlaces } from '../../machine/volumes/pod-volumes.ts';
import type { SubPaths } from '../../machine/volumes/sub-path.ts';
import { VolumeProblem } from '../../machine/volumes/volume-problem.ts';
import { ContainerConfigError, expand } from '../environment/container-environment.ts';

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
  const ofObjects = new Set((pod.spec.volumes ?? []).filter(showsObjects).map(({ name }) => name));
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
      ...(wanted.readOnly === true || (facts.readonlyMounts && ofObjects.has(wanted.name)) ? { readonly: true } : {}),
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
 * there for it to follow (CVE-2017-1002102). They are read-only, as in kubelet.
 */
function showsObjects({ secret, configMap, downwardAPI, projected }: coreV1.Volume): boolean {
  return Boolean(secret ?? configMap ?? downwardAPI ?? projected);
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
