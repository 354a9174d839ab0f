import { defineKind, type KindDefinition } from '@keelson/core';
import { defaultPodSpec } from '../../core/v1/pod/default-pod-spec.ts';
import { checkNonNegative, newErrors, sameJson } from '../../validation/checks.ts';
import { checkDaemonSet, checkDaemonSetStatus } from '../../workload/check-daemon-set.ts';
import { daemonSetColumns } from '../../workload/workload-columns.ts';
import { daemonSetConversion, dropGenerationAnnotation } from './daemon-set-conversion.ts';
import { DaemonSetSchema, type DaemonSet as DaemonSetType } from './schema/index.ts';
import { defaultFromTemplate } from './template-defaults.ts';

/**
 * The older version of apps/v1 DaemonSet: the selector is optional and mutable, and the default update strategy is
 * OnDelete. Stored as apps/v1.
 */
export const ExtensionsV1beta1DaemonSet: KindDefinition<DaemonSetType> = defineKind({
  group: 'extensions',
  version: 'v1beta1',
  kind: 'DaemonSet',
  deprecated: { since: '1.8', removed: '1.16', replacement: 'apps/v1 DaemonSet' },
  names: { shortNames: ['ds'], categories: ['all'] },
  schema: DaemonSetSchema,
  storage: daemonSetConversion,
  strategy: {
    generation: 'spec',
    defaultPropagation: 'Orphan',
    default: defaultDaemonSet,
    prepareForCreate(daemonSet) {
      daemonSet.spec.templateGeneration = 1;
    },
    prepareForUpdate(daemonSet, old) {
      const before = old.spec.templateGeneration ?? 0;
      const changed = !sameJson(daemonSet.spec.template, old.spec.template);
      daemonSet.spec.templateGeneration = changed ? before + 1 : before;
    },
    validate({ spec }) {
      const errors = newErrors();
      checkDaemonSet(spec, errors);
      checkNonNegative(spec.templateGeneration, 'spec.templateGeneration', errors);
      return errors;
    },
    validateStatusUpdate({ status }, old) {
      const errors = newErrors();
      checkDaemonSetStatus(status, old.status, errors);
      return errors;
    },
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns: daemonSetColumns,
});
export type ExtensionsV1beta1DaemonSet = DaemonSetType;

function defaultDaemonSet(daemonSet: DaemonSetType): void {
  const { spec } = daemonSet;
  defaultFromTemplate(daemonSet);
  dropGenerationAnnotation(daemonSet);
  spec.updateStrategy ??= {};
  spec.updateStrategy.type ||= 'OnDelete';
  if (spec.updateStrategy.type === 'RollingUpdate') {
    spec.updateStrategy.rollingUpdate ??= {};
    spec.updateStrategy.rollingUpdate.maxUnavailable ??= 1;
  }
  spec.revisionHistoryLimit ??= 10;
  defaultPodSpec(spec.template.spec);
}
