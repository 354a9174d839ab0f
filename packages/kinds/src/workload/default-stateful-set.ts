import { defaultPodSpec } from '../core/v1/pod/default-pod-spec.ts';
import type { AnyStatefulSetSpec } from './check-stateful-set.ts';

/** Defaults that all versions of StatefulSet have in common; those of the update strategy differ. */
export function defaultStatefulSet(spec: AnyStatefulSetSpec): void {
  spec.podManagementPolicy ||= 'OrderedReady';
  const strategy = spec.updateStrategy;
  if (strategy?.type === 'RollingUpdate' && strategy.rollingUpdate) strategy.rollingUpdate.partition ??= 0;
  spec.persistentVolumeClaimRetentionPolicy ??= {};
  spec.persistentVolumeClaimRetentionPolicy.whenDeleted ||= 'Retain';
  spec.persistentVolumeClaimRetentionPolicy.whenScaled ||= 'Retain';
  spec.replicas ??= 1;
  spec.revisionHistoryLimit ??= 10;
  for (const claim of spec.volumeClaimTemplates ?? []) {
    claim.apiVersion = 'v1';
    claim.kind = 'PersistentVolumeClaim';
    claim.spec.volumeMode ??= 'Filesystem';
    claim.status ??= {};
    claim.status.phase ||= 'Pending';
  }
  defaultPodSpec(spec.template.spec);
}
