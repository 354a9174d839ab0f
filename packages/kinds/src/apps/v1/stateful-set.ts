import { defineKind, type KindDefinition } from '@keelson/core';
import { newErrors } from '../../validation/checks.ts';
import {
  checkNewStatefulSet,
  checkStatefulSet,
  checkStatefulSetStatus,
  checkStatefulSetUpdate,
} from '../../workload/check-stateful-set.ts';
import { defaultStatefulSet } from '../../workload/default-stateful-set.ts';
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
    default({ spec }) {
      spec.updateStrategy ??= {};
      if (!spec.updateStrategy.type) {
        spec.updateStrategy.type = 'RollingUpdate';
        spec.updateStrategy.rollingUpdate ??= {};
      }
      defaultStatefulSet(spec);
    },
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
    warnings: ({ spec }) =>
      (spec.revisionHistoryLimit ?? 0) < 0
        ? ['spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended']
        : [],
  },
  subresources: [autoscalingScale, { type: 'status', name: 'status' }],
  columns: statefulSetColumns,
});
export type StatefulSet = StatefulSetType;
