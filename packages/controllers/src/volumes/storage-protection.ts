import { addFinalizer, type ControllerDefinition, relatedKind, removeFinalizer } from '@keelson/controller-kit';
import { PersistentVolume, PersistentVolumeClaim, Pod } from '@keelson/kinds';

const claimFinalizer = 'kubernetes.io/pvc-protection';
const volumeFinalizer = 'kubernetes.io/pv-protection';

/** Keeps a claim that is being deleted until no pod uses it. */
export const claimProtection: ControllerDefinition<PersistentVolumeClaim> = {
  name: 'persistentvolumeclaim-protection-controller',
  kind: PersistentVolumeClaim,
  related: [relatedKind(Pod, (pod) => claimKeys(pod))],
  reconcile: async (claim, run) => {
    const { name, namespace, deletionTimestamp } = claim.metadata ?? {};
    if (deletionTimestamp === undefined) {
      await addFinalizer(run, PersistentVolumeClaim, claim, claimFinalizer);
      return undefined;
    }
    const users = run.read(Pod).by(claimKeys, `${namespace}/${name}`);
    // A pod without a node does not use its claims yet, and is not assigned to a node while a claim is being deleted.
    const isUsed = users.some(({ spec, status }) => {
      const hasEnded = status?.phase === 'Succeeded' || status?.phase === 'Failed';
      return spec.nodeName && !hasEnded;
    });
    if (!isUsed) await removeFinalizer(run, PersistentVolumeClaim, claim, claimFinalizer);
    return undefined;
  },
};

/** Keeps a volume that is being deleted until it is no longer bound to a claim. */
export const volumeProtection: ControllerDefinition<PersistentVolume> = {
  name: 'persistentvolume-protection-controller',
  kind: PersistentVolume,
  reconcile: async (volume, run) => {
    if (volume.metadata?.deletionTimestamp === undefined)
      await addFinalizer(run, PersistentVolume, volume, volumeFinalizer);
    else if (volume.status?.phase !== 'Bound') await removeFinalizer(run, PersistentVolume, volume, volumeFinalizer);
    return undefined;
  },
};

/** Keys of the claims of a pod. */
function claimKeys({ metadata, spec }: Pod): readonly string[] {
  return (spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    const claim = persistentVolumeClaim?.claimName ?? (ephemeral && `${metadata?.name}-${name}`);
    return claim === undefined ? [] : [`${metadata?.namespace}/${claim}`];
  });
}
