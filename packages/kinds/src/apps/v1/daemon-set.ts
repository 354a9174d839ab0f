import { defineKind, type KindDefinition } from '@keelson/core';
import { defaultPodSpec } from '../../core/v1/pod/default-pod-spec.ts';
import { podSpecWarnings } from '../../core/v1/pod/pod-warnings.ts';
import { checkUnchanged, newErrors, sameJson } from '../../validation/checks.ts';
import { checkDaemonSet, checkDaemonSetStatus } from '../../workload/check-daemon-set.ts';
import { integerAnnotation, templateGenerationAnnotation } from '../../workload/server-annotations.ts';
import { daemonSetColumns } from '../../workload/workload-columns.ts';
import { DaemonSetSchema, type DaemonSet as DaemonSetType } from './schema/index.ts';

/** Keeps one pod running on every fitting node. Also the stored form of extensions/v1beta1. */
export const DaemonSet: KindDefinition<DaemonSetType> = defineKind({
  group: 'apps',
  version: 'v1',
  kind: 'DaemonSet',
  names: { shortNames: ['ds'], categories: ['all'] },
  schema: DaemonSetSchema,
  strategy: {
    generation: 'spec',
    default: defaultDaemonSet,
    prepareForCreate: (daemonSet) => setTemplateGeneration(daemonSet, 1),
    prepareForUpdate(daemonSet, old) {
      const before = integerAnnotation(old, templateGenerationAnnotation) ?? 0;
      const changed = !sameJson(daemonSet.spec.template, old.spec.template);
      setTemplateGeneration(daemonSet, changed ? before + 1 : before);
    },
    validate({ spec }) {
      const errors = newErrors();
      checkDaemonSet(spec, errors);
      return errors;
    },
    validateUpdate({ spec }, old) {
      const errors = newErrors();
      checkUnchanged(spec.selector, old.spec.selector, 'spec.selector', errors);
      return errors;
    },
    validateStatusUpdate({ status }, old) {
      const errors = newErrors();
      checkDaemonSetStatus(status, old.status, errors);
      return errors;
    },
    warnings: (object, old) => {
      const [generation, before] = [object, old].map(
        (one) => one && integerAnnotation(one, templateGenerationAnnotation),
      );
      return old && generation === before ? [] : podSpecWarnings(object.spec.template, 'spec.template');
    },
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns: daemonSetColumns,
});
export type DaemonSet = DaemonSetType;

function defaultDaemonSet({ spec }: DaemonSetType): void {
  spec.updateStrategy ??= {};
  spec.updateStrategy.type ||= 'RollingUpdate';
  if (spec.updateStrategy.type === 'RollingUpdate') {
    spec.updateStrategy.rollingUpdate ??= {};
    spec.updateStrategy.rollingUpdate.maxUnavailable ??= 1;
    spec.updateStrategy.rollingUpdate.maxSurge ??= 0;
  }
  spec.revisionHistoryLimit ??= 10;
  defaultPodSpec(spec.template.spec);
}

/** Sets the number of template changes, which only the server maintains; the value of a client is ignored. */
function setTemplateGeneration(daemonSet: DaemonSetType, generation: number): void {
  daemonSet.metadata ??= {};
  daemonSet.metadata.annotations = {
    ...daemonSet.metadata.annotations,
    [templateGenerationAnnotation]: String(generation),
  };
}
