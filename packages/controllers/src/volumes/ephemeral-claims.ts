import {
  type ControllerDefinition,
  isControlledBy,
  ownerReference,
  type ReconcileRun,
  relatedKind,
} from '@keelson/controller-kit';
import { PersistentVolumeClaim, Pod } from '@keelson/kinds';
import { textOf } from '../workload/pod-writes.ts';

/** Creates the claims of generic ephemeral volumes, which are deleted with their pod. */
export const ephemeralClaims: ControllerDefinition<Pod> = {
  name: 'ephemeral-volume-controller',
  eventSource: 'ephemeral_volume',
  kind: Pod,
  related: [relatedKind(PersistentVolumeClaim)],
  owns: [PersistentVolumeClaim],
  reconcile: async (pod, run) => {
    const { name: podName = '', namespace = '', deletionTimestamp } = pod.metadata ?? {};
    if (deletionTimestamp !== undefined) return undefined;
    for (const { name: volumeName, ephemeral } of pod.spec.volumes ?? []) {
      if (ephemeral?.volumeClaimTemplate === undefined) continue;
      const name = `${podName}-${volumeName}`;
      const existing = run.read(PersistentVolumeClaim).get(`${namespace}/${name}`);
      if (existing !== undefined) {
        if (isControlledBy(existing, pod)) continue;
        const problem = `PVC ${namespace}/${name} was not created for pod ${namespace}/${podName} (pod is not owner)`;
        reportFailure(run, pod, volumeName, problem);
        throw new Error(problem);
      }
      const { metadata, spec } = ephemeral.volumeClaimTemplate;
      const { labels, annotations } = metadata ?? {};
      try {
        await run.client
          .resource(PersistentVolumeClaim)
          .namespace(namespace)
          .create({
            metadata: {
              name,
              ...(labels ? { labels } : {}),
              ...(annotations ? { annotations } : {}),
              ownerReferences: [ownerReference(Pod, pod)],
            },
            spec,
          });
      } catch (error) {
        reportFailure(run, pod, volumeName, `create PVC ${name}: ${textOf(error)}`);
        throw error;
      }
    }
    return undefined;
  },
};

function reportFailure(run: ReconcileRun, pod: Pod, volume: string, problem: string): void {
  run.event(pod, 'Warning', 'FailedBinding', `ephemeral volume ${volume}: ${problem}`);
}
