import { type Column, defineKind, type FieldError, fieldError, type KindDefinition } from '@keelson/core';
import { labelsText } from '../../columns/columns.ts';
import { checkNonNegative, newErrors } from '../../validation/checks.ts';
import { checkReplicaSetStatus } from '../../workload/check-replica-set.ts';
import { checkMadePods } from '../../workload/check-workload.ts';
import { autoscalingScaleOf } from '../../workload/scale.ts';
import { replicaSetColumns } from '../../workload/workload-columns.ts';
import { checkPodTemplate } from './pod/check-pod-spec.ts';
import { defaultPodSpec } from './pod/default-pod-spec.ts';
import { nameWarnings, templateWarnings } from './pod/pod-warnings.ts';
import {
  ReplicationControllerSchema,
  type ReplicationController as ReplicationControllerType,
} from './schema/index.ts';

/** The columns of replica sets; the selector is a map here. */
const columns = replicaSetColumns.map(
  (column): Column<ReplicationControllerType> => ({
    ...column,
    value: (object, context) => {
      if (column.name === 'Selector') return labelsText(object.spec.selector);
      const { selector: _, template, ...spec } = object.spec;
      const pods = template ?? { spec: { containers: [] } };
      return column.value({ ...object, spec: { ...spec, template: pods } }, context);
    },
  }),
);

/** Keeps a number of equal pods running; ReplicaSet is its successor. */
export const ReplicationController: KindDefinition<ReplicationControllerType> = defineKind({
  group: '',
  version: 'v1',
  kind: 'ReplicationController',
  names: { shortNames: ['rc'], categories: ['all'] },
  schema: ReplicationControllerSchema,
  strategy: {
    generation: 'spec',
    defaultPropagation: 'Orphan',
    default: defaultController,
    validate: validateController,
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
  subresources: [
    autoscalingScaleOf(({ spec }: ReplicationControllerType) => ({ matchLabels: spec.selector ?? {} })),
    { type: 'status', name: 'status' },
  ],
  columns,
  selectableFields: [['status.replicas', ({ status }) => String(status?.replicas ?? 0)]],
});
export type ReplicationController = ReplicationControllerType;

function defaultController(controller: ReplicationControllerType): void {
  const { spec } = controller;
  spec.replicas ??= 1;
  if (!spec.template) return;
  const labels = spec.template.metadata?.labels;
  if (labels && Object.keys(spec.selector ?? {}).length === 0) spec.selector = { ...labels };
  if (labels && Object.keys(controller.metadata?.labels ?? {}).length === 0) {
    controller.metadata = { ...controller.metadata, labels: { ...labels } };
  }
  defaultPodSpec(spec.template.spec);
}

function validateController({ spec }: ReplicationControllerType): FieldError[] {
  const errors = newErrors();
  const { selector = {}, template } = spec;
  const wanted = Object.entries(selector);
  checkNonNegative(spec.minReadySeconds, 'spec.minReadySeconds', errors);
  if (wanted.length === 0) errors.push(fieldError.required('spec.selector'));
  checkNonNegative(spec.replicas, 'spec.replicas', errors);
  if (!template) {
    errors.push(fieldError.required('spec.template'));
    return errors;
  }
  const labels = template.metadata?.labels ?? {};
  if (!wanted.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value)) {
    const detail = '`selector` does not match template `labels`';
    errors.push(fieldError.invalid('spec.template.metadata.labels', labels, detail));
  }
  checkPodTemplate(template, 'spec.template', errors);
  checkMadePods(template, 'ReplicationController', errors);
  return errors;
}
