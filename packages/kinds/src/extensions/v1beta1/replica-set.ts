import { defineKind, type KindDefinition } from '@keelson/core';
import { ReplicaSet as StoredKind } from '../../apps/v1/replica-set.ts';
import type { ReplicaSet as StoredReplicaSet } from '../../apps/v1/schema/index.ts';
import { defaultPodSpec } from '../../core/v1/pod/default-pod-spec.ts';
import { newErrors } from '../../validation/checks.ts';
import { checkReplicaSet, checkReplicaSetStatus } from '../../workload/check-replica-set.ts';
import { replicaSetColumns } from '../../workload/workload-columns.ts';
import { extensionsScale } from './scale.ts';
import { ReplicaSetSchema, type ReplicaSet as ReplicaSetType } from './schema/index.ts';
import { defaultFromTemplate } from './template-defaults.ts';

/** The older version of apps/v1 ReplicaSet: the selector is optional and mutable. Stored as apps/v1. */
export const ExtensionsV1beta1ReplicaSet: KindDefinition<ReplicaSetType> = defineKind({
  group: 'extensions',
  version: 'v1beta1',
  kind: 'ReplicaSet',
  deprecated: { since: '1.8', removed: '1.16', replacement: 'apps/v1 ReplicaSet' },
  names: { shortNames: ['rs'], categories: ['all'] },
  schema: ReplicaSetSchema,
  storage: {
    kind: StoredKind,
    toStorage: (replicaSet) => ({ ...replicaSet, apiVersion: StoredKind.apiVersion, kind: StoredKind.kind }),
    fromStorage: (stored) => ({
      ...(stored as StoredReplicaSet),
      apiVersion: 'extensions/v1beta1',
      kind: 'ReplicaSet',
    }),
    isRelabel: () => true,
  },
  strategy: {
    generation: 'spec',
    defaultPropagation: 'Orphan',
    default(replicaSet) {
      defaultFromTemplate(replicaSet);
      replicaSet.spec.replicas ??= 1;
      defaultPodSpec(replicaSet.spec.template.spec);
    },
    validate({ spec }) {
      const errors = newErrors();
      checkReplicaSet(spec, errors);
      return errors;
    },
    validateStatusUpdate({ status }) {
      const errors = newErrors();
      checkReplicaSetStatus(status, errors);
      return errors;
    },
  },
  subresources: [extensionsScale, { type: 'status', name: 'status' }],
  columns: replicaSetColumns,
});
export type ExtensionsV1beta1ReplicaSet = ReplicaSetType;
