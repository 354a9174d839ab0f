import { defineKind, type KindDefinition } from '@keelson/core';
import { defaultPodSpec } from '../../core/v1/pod/default-pod-spec.ts';
import { templateWarnings } from '../../core/v1/pod/pod-warnings.ts';
import { newErrors } from '../../validation/checks.ts';
import {
  checkNewStatefulSet,
  checkStatefulSet,
  checkStatefulSetStatus,
  checkStatefulSetUpdate,
} from '../../workload/check-stateful-set.ts';
import { autoscalingScale } from '../../workload/scale.ts';
import { statefulSetColumns } from '../../workload/workload-columns.ts';
import { StatefulSetSchema, type StatefulSet as StatefulSetType } from './schema/index.ts';

/** Keeps a number of pods running that have names and storage of their own. */
export const StatefulSet: KindDefinition<StatefulSetType> = defineKind({
  group: 'apps',
  version: 'v1',
  kind: 'StatefulSet',
  names: { shortNames: ['sts'], categories: ['all'] },
  schema: StatefulSetSchema,
  strategy: {
    nameRule: 'dns1123Label',
    generation: 'spec',
    default: defaultStatefulSet,
    validate({ spec }) {
      const errors = newErrors();
      checkStatefulSet(spec, errors);
      return errors;
    },
    validateCreate({ spec }) {
      const errors = newErrors();
      checkNewStatefulSet(spec, errors);
      return errors;
    },
    validateUpdate({ spec }, old) {
      const errors = newErrors();
      checkStatefulSetUpdate(spec, old.spec, errors);
      return errors;
    },
    validateStatusUpdate({ status }, old) {
      const errors = newErrors();
      checkStatefulSetStatus(status, old.status, errors);
      return errors;
    },
    warnings: (object, old) => [
      ...templateWarnings(object, old, object.spec.template),
      ...((object.spec.revisionHistoryLimit ?? 0) < 0 ? [negativeLimit] : []),
    ],
  },
  subresources: [autoscalingScale, { type: 'status', name: 'status' }],
  columns: statefulSetColumns,
});
export type StatefulSet = StatefulSetType;

const negativeLimit =
  'spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended';

function defaultStatefulSet({ spec }: StatefulSetType): void {
  spec.updateStrategy ??= {};
  if (!spec.updateStrategy.type) {
    spec.updateStrategy.type = 'RollingUpdate';
    spec.updateStrategy.rollingUpdate ??= {};
  }
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
