import type { coreV1, Pod } from '@keelson/kinds';
import type { ObjectReader } from '../../base/pod/object-reader.ts';
import { VolumeProblem } from './volume-problem.ts';

/** The name of the claim of a volume; undefined for volumes without one. */
export function claimNameOf({ name, persistentVolumeClaim, ephemeral }: coreV1.Volume, pod: Pod): string | undefined {
  return persistentVolumeClaim?.claimName ?? (ephemeral ? `${pod.metadata?.name}-${name}` : undefined);
}

/**
 * The volume to which a claim is bound, as if the pod had it itself.
 *
 * @throws VolumeProblem while the claim is not bound
 */
export async function claimedVolume(
  { name, ephemeral }: coreV1.Volume,
  claimName: string,
  pod: Pod,
  objects: ObjectReader,
): Promise<coreV1.Volume> {
  const { namespace = '', uid } = pod.metadata ?? {};
  const quoted = JSON.stringify(claimName);
  const claim = await objects.claim(namespace, claimName);
  if (claim === undefined) throw new VolumeProblem(`persistentvolumeclaim ${quoted} not found`);
  if (ephemeral && !claim.metadata?.ownerReferences?.some((owner) => owner.controller && owner.uid === uid))
    throw new VolumeProblem(`persistentvolumeclaim ${quoted} was not created for the pod`);
  if (claim.metadata?.deletionTimestamp !== undefined)
    throw new VolumeProblem(`persistentvolumeclaim ${quoted} is being deleted`);
  const { volumeName = '' } = claim.spec;
  if (volumeName === '' || claim.status?.phase !== 'Bound')
    throw new VolumeProblem(`persistentvolumeclaim ${quoted} is not bound`);
  const volume = await objects.volume(volumeName);
  if (volume === undefined) throw new VolumeProblem(`persistentvolume ${JSON.stringify(volumeName)} not found`);
  if (volume.spec.claimRef?.uid !== claim.metadata?.uid)
    throw new VolumeProblem(`persistentvolume ${JSON.stringify(volumeName)} is not bound to ${quoted}`);
  if (volume.spec.volumeMode === 'Block') throw new VolumeProblem('block devices are not supported by this agent');
  return { name, ...sourceOf(volume.spec) };
}

/** The source in the form that volumes of pods have. */
function sourceOf({ local, hostPath, nfs, ...others }: coreV1.PersistentVolumeSpec): Partial<coreV1.Volume> {
  if (local) return { hostPath: { path: local.path, type: 'Directory' } };
  if (hostPath) return { hostPath };
  if (nfs) return { nfs };
  const type = Object.entries(others).find(([key, value]) => isSource(key, value))?.[0] ?? 'unknown';
  throw new VolumeProblem(`persistent volumes of type ${type} are not supported by this agent`);
}

function isSource(key: string, value: unknown): boolean {
  const isSettings = key === 'capacity' || key === 'claimRef' || key === 'nodeAffinity';
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isSettings;
}
