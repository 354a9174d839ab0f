import type { Logger } from '@keelson/core/runtime';
import type { coreV1, Pod } from '@keelson/kinds';
import type { AgentPaths } from '../../base/agent-paths.ts';
import type { EnvironmentFacts } from '../../base/pod/environment-facts.ts';
import { uidOf } from '../../base/pod/pod-spec.ts';
import type { HostAccess } from '../host/host-access.ts';
import { writeAtomically } from './atomic-writer.ts';
import { claimedVolume, claimNameOf } from './claimed-volume.ts';
import type { FlexVolumes } from './flex-volumes.ts';
import { prepareHostPath, provideEmptyDir } from './local-volumes.ts';
import type { Mounter } from './mounter.ts';
import { networkMount } from './network-mount.ts';
import { volumePayload } from './payload.ts';
import { VolumeProblem } from './volume-problem.ts';

/** Paths of the volumes of a pod on the host, by name. */
export type VolumePlaces = ReadonlyMap<string, string>;

/** A volume whose usage is measured: its own files, or its own file system. */
export interface MeasuredVolume {
  readonly name: string;
  readonly path: string;
  readonly measure: 'files' | 'disk';
}

export interface PodVolumesOptions {
  readonly paths: AgentPaths;
  readonly host: HostAccess;
  readonly mounter: Mounter;
  readonly flex: FlexVolumes;
  readonly logger: Logger;
  /** Checks the prerequisites of a mount of this type. Absent: mounts are not checked. @throws VolumeProblem */
  readonly checkCapabilities?: (type: string) => Promise<void>;
}

/** How many volumes of a pod are provided at the same time. */
const atOnce = 8;

/** Provides the volumes of pods below the directory of the agent. */
export class PodVolumes {
  readonly #options: PodVolumesOptions;
  /** What claims are bound to, by UID of the pod and name of the volume. It never changes. */
  readonly #claimed = new Map<string, Map<string, coreV1.Volume>>();
  readonly #measured = new Map<string, readonly MeasuredVolume[]>();
  #warnedOfDisk = false;

  constructor(options: PodVolumesOptions) {
    this.#options = options;
  }

  /**
   * Mounts or creates all volumes of the pod, and updates those with API objects. Idempotent. A volume that fails does
   * not delay the others.
   *
   * @throws VolumeProblem that names every volume that failed
   */
  async provide(pod: Pod, facts: EnvironmentFacts): Promise<VolumePlaces> {
    const { paths, host } = this.#options;
    const volumes = pod.spec.volumes ?? [];
    await host.files.makeDirectory(paths.pod(uidOf(pod)), 0o750);
    const places = new Map<string, string>();
    const failed = new Map<string, string>();
    const provide = async (volume: coreV1.Volume) => {
      try {
        places.set(volume.name, await this.#provideOne(pod, await this.#resolved(pod, volume, facts), facts));
      } catch (error) {
        failed.set(volume.name, error instanceof Error ? error.message : String(error));
      }
    };
    for (let done = 0; done < volumes.length; done += atOnce)
      await Promise.all(volumes.slice(done, done + atOnce).map(provide));
    if (failed.size > 0) throw new VolumeProblem(problems(volumes, failed));
    this.#measured.set(uidOf(pod), measuredVolumes(volumes, places));
    return places;
  }

  /** Volumes by the UID of the pod, as far as they were provided since the agent started. */
  measured(): ReadonlyMap<string, readonly MeasuredVolume[]> {
    return this.#measured;
  }

  /** Removes all files of a pod. Nothing is deleted while something is still mounted below its directory. */
  async remove(uid: string): Promise<void> {
    const { paths, host, mounter, flex } = this.#options;
    const dir = paths.pod(uid);
    await flex.remove(uid);
    await mounter.unmountBelow(dir);
    await host.files.remove(dir);
    this.#measured.delete(uid);
    this.#claimed.delete(uid);
  }

  /** A volume in place of the claim that stands for it. */
  async #resolved(pod: Pod, volume: coreV1.Volume, { objects }: EnvironmentFacts): Promise<coreV1.Volume> {
    const claimName = claimNameOf(volume, pod);
    if (claimName === undefined) return volume;
    const known = this.#claimed.get(uidOf(pod)) ?? new Map<string, coreV1.Volume>();
    this.#claimed.set(uidOf(pod), known);
    const resolved = known.get(volume.name) ?? (await claimedVolume(volume, claimName, pod, objects));
    known.set(volume.name, resolved);
    return resolved;
  }

  async #provideOne(pod: Pod, volume: coreV1.Volume, facts: EnvironmentFacts): Promise<string> {
    const { paths, host, mounter, flex } = this.#options;
    const { hostPath, emptyDir, flexVolume } = volume;
    if (hostPath) return prepareHostPath(hostPath.path, hostPath.type ?? '', host.files);
    const group = pod.spec.securityContext?.fsGroup ?? undefined;
    if (emptyDir) {
      const dir = paths.volume(uidOf(pod), 'empty-dir', volume.name);
      await provideEmptyDir(dir, emptyDir, group, host.files, mounter);
      if (emptyDir.medium === 'Memory' && mounter.disabled) this.#warnOfDisk();
      return dir;
    }
    if (flexVolume) return flex.provide(pod, volume.name, flexVolume, facts.objects);
    return (await this.#ofNetwork(pod, volume, facts)) ?? this.#ofObjects(pod, volume, facts, group);
  }

  async #ofNetwork(pod: Pod, volume: coreV1.Volume, { objects }: EnvironmentFacts): Promise<string | undefined> {
    const { paths, host, mounter, checkCapabilities } = this.#options;
    const wanted = await networkMount(volume, pod, objects);
    if (wanted === undefined) return undefined;
    const { plugin, ...mount } = wanted;
    const target = paths.volume(uidOf(pod), plugin, volume.name);
    if (await mounter.isMounted(target)) return target;
    await checkCapabilities?.(mount.type);
    await host.files.makeDirectory(target, 0o750);
    await mounter.mount({ ...mount, target });
    return target;
  }

  async #ofObjects(
    pod: Pod,
    volume: coreV1.Volume,
    facts: EnvironmentFacts,
    group: number | undefined,
  ): Promise<string> {
    const { paths, host } = this.#options;
    const payload = await volumePayload(volume, pod, facts);
    if (payload === undefined) {
      const type = Object.keys(volume).find((key) => key !== 'name') ?? 'unknown';
      throw new VolumeProblem(`volumes of type ${type} are not supported by this agent`);
    }
    const plugin = volume.secret
      ? 'secret'
      : volume.configMap
        ? 'configmap'
        : volume.downwardAPI
          ? 'downward-api'
          : 'projected';
    const dir = paths.volume(uidOf(pod), plugin, volume.name);
    if (showsSecrets(volume)) await this.#mountInMemory(dir);
    await writeAtomically(dir, payload, group, host.files);
    return dir;
  }

  /** Secrets are written to memory. Only a node that cannot mount writes them to disk, and logs this once. */
  async #mountInMemory(target: string): Promise<void> {
    const { mounter, host } = this.#options;
    if (mounter.disabled) return this.#warnOfDisk();
    await host.files.makeDirectory(target, 0o755);
    await mounter.mount({ type: 'tmpfs', source: 'tmpfs', target, options: ['mode=0755'] });
  }

  #warnOfDisk(): void {
    const { paths, logger } = this.#options;
    if (this.#warnedOfDisk) return;
    this.#warnedOfDisk = true;
    logger.warn(
      'secrets and volumes in memory are written to disk because this node cannot mount file systems in memory',
      { component: 'volumes', directory: paths.pods() },
    );
  }
}

function showsSecrets({ secret, projected }: coreV1.Volume): boolean {
  return Boolean(secret) || projected?.sources?.some((source) => source.secret || source.serviceAccountToken) === true;
}

/** In the order of the pod, so that the message of the same failures stays the same. */
function problems(volumes: readonly coreV1.Volume[], failed: ReadonlyMap<string, string>): string {
  const messages = volumes.map(({ name }) => failed.has(name) && `volume "${name}": ${failed.get(name)}`);
  return messages.filter(Boolean).join('; ');
}

function measuredVolumes(volumes: readonly coreV1.Volume[], places: VolumePlaces): readonly MeasuredVolume[] {
  return volumes.flatMap((volume) => {
    const path = places.get(volume.name);
    const measure = measureOf(volume);
    return path === undefined || measure === undefined ? [] : [{ name: volume.name, path, measure }];
  });
}

/** Undefined for hostPath and claims: their files do not count as usage of the pod. */
function measureOf(volume: coreV1.Volume): MeasuredVolume['measure'] | undefined {
  const { hostPath, nfs, cephfs, flexVolume } = volume;
  if (hostPath || volume.persistentVolumeClaim || volume.ephemeral) return undefined;
  // A network volume may have too many files to count.
  return nfs || cephfs || flexVolume ? 'disk' : 'files';
}
