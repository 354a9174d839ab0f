import { defineKind, type KindDefinition } from '@keelson/core';
import { defaultPodSpec } from '../../core/v1/pod/default-pod-spec.ts';
import { nameWarnings, templateWarnings } from '../../core/v1/pod/pod-warnings.ts';
import { checkUnchanged, newErrors } from '../../validation/checks.ts';
import { checkReplicaSet, checkReplicaSetStatus } from '../../workload/check-replica-set.ts';
import { autoscalingScale } from '../../workload/scale.ts';
import { replicaSetColumns } from '../../workload/workload-columns.ts';
import { ReplicaSetSchema, type ReplicaSet as ReplicaSetType } from './schema/index.ts';

/** Keeps a number of equal pods running. Also the stored form of extensions/v1beta1. */
export const ReplicaSet: KindDefinition<ReplicaSetType> = defineKind({
  group: 'apps',
  version: 'v1',
  kind: 'ReplicaSet',
  names: { shortNames: ['rs'], categories: ['all'] },
  schema: ReplicaSetSchema,
  strategy: {
    generation: 'spec',
    default({ spec }) {
      spec.replicas ??= 1;
      defaultPodSpec(spec.template.spec);
    },
    validate({ spec }) {
      const errors = newErrors();
      checkReplicaSet(spec, errors);
      return errors;
    },
    validateUpdate({ spec }, old) {
      const errors = newErrors();
      checkUnchanged(spec.selector, old.spec.selector, 'spec.selector', errors);
      return errors;
    },
    validateStatusUpdate({ status }) {
      const errors = newErrors();
      checkReplicaSetStatus(status, errors);
      return errors;
    },
    warnings: (object, old) => [
      ...(old ? [] : nameWarnings(object.metadata?.name ?? '')),
      ...templateWarnings(object, old, object.spec.template),
    ],
  },
  subresources: [autoscalingScale, { type: 'status', name: 'status' }],
  columns: replicaSetColumns,
});
export type ReplicaSet = ReplicaSetType;
