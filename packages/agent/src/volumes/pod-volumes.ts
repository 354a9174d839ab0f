import { chmod, chown, mkdir, rm } from 'node:fs/promises';
import { quantityValue } from '@keelson/core';
import type { coreV1, Pod } from '@keelson/kinds';
import type { EnvironmentFacts } from '../environment/container-environment.ts';
import { uidOf } from '../pods/pod-spec-words.ts';
import type { AgentPaths } from './agent-paths.ts';
import { writeAtomically } from './atomic-writer.ts';
import { prepareHostPath } from './host-path.ts';
import type { Mounter } from './mounter.ts';
import { volumePayload } from './payload.ts';
import { VolumeProblem } from './volume-problem.ts';

/** Where each volume of a pod is on the machine, by its name. */
export type VolumePlaces = ReadonlyMap<string, string>;

/** Provides the volumes of pods below the agent's directory. */
export class PodVolumes {
  readonly #paths: AgentPaths;
  readonly #mounter: Mounter;

  constructor(paths: AgentPaths, mounter: Mounter) {
    this.#paths = paths;
    this.#mounter = mounter;
  }

  /** Makes all volumes of the pod ready, and those that show objects up to date. Repeating it is harmless. @throws VolumeProblem */
  async provide(pod: Pod, facts: EnvironmentFacts): Promise<VolumePlaces> {
    await mkdir(this.#paths.pod(uidOf(pod)), { recursive: true, mode: 0o750 });
    const places = new Map<string, string>();
    for (const volume of pod.spec.volumes ?? []) {
      try {
        places.set(volume.name, await this.#provideOne(pod, volume, facts));
      } catch (error) {
        throw new VolumeProblem(`volume "${volume.name}": ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    return places;
  }

  /** Takes away everything the agent keeps for a pod. */
  async remove(uid: string): Promise<void> {
    const dir = this.#paths.pod(uid);
    await this.#mounter.unmountBelow(dir);
    await rm(dir, { recursive: true, force: true });
  }

  async #provideOne(pod: Pod, volume: coreV1.Volume, facts: EnvironmentFacts): Promise<string> {
    const { hostPath, emptyDir } = volume;
    if (hostPath) return prepareHostPath(hostPath.path, hostPath.type ?? '');
    const group = pod.spec.securityContext?.fsGroup;
    if (emptyDir) return this.#emptyDir(pod, volume.name, emptyDir, group);
    const payload = await volumePayload(volume, pod, facts);
    if (payload === undefined) {
      const type = Object.keys(volume).find((key) => key !== 'name') ?? 'unknown';
      throw new VolumeProblem(`volumes of type ${type} are not supported by this agent`);
    }
    const plugin = volume.secret ? 'secret' : volume.configMap ? 'configmap' : volume.downwardAPI ? 'downward-api' : 'projected';
    const dir = this.#paths.volume(uidOf(pod), plugin, volume.name);
    await mkdir(dir, { recursive: true, mode: 0o755 });
    // Secrets stay off the disk where the agent may mount.
    if (volume.secret) await this.#mounter.tmpfs(dir, undefined).catch(() => undefined);
    await writeAtomically(dir, payload, group ?? undefined);
    return dir;
  }

  async #emptyDir(pod: Pod, name: string, source: coreV1.EmptyDirVolumeSource, group: number | undefined): Promise<string> {
    const dir = this.#paths.volume(uidOf(pod), 'empty-dir', name);
    const made = await mkdir(dir, { recursive: true });
    const limit = source.sizeLimit === undefined ? undefined : Number(quantityValue(source.sizeLimit));
    if (source.medium === 'Memory') await this.#mounter.tmpfs(dir, limit);
    else if (source.medium) throw new VolumeProblem(`medium ${source.medium} is not supported by this agent`);
    if (made === undefined) return dir;
    await chmod(dir, group === undefined ? 0o777 : 0o2777);
    if (group !== undefined) await chown(dir, -1, group);
    return dir;
  }
}
