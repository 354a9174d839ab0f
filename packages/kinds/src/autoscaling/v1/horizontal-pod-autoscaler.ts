import { type Column, defineKind, type KindDefinition } from '@keelson/core';
import { newErrors } from '../../validation/checks.ts';
import { autoscalerColumns } from '../v2/autoscaler-columns.ts';
import { checkAutoscaler, checkAutoscalerStatus } from '../v2/check-horizontal-pod-autoscaler.ts';
import type { HorizontalPodAutoscaler as Stored } from '../v2/schema/index.ts';
import { autoscalerConversion } from './autoscaler-conversion.ts';
import {
  HorizontalPodAutoscalerSchema,
  type HorizontalPodAutoscaler as HorizontalPodAutoscalerType,
} from './schema/index.ts';

const storedFormOf = (autoscaler: HorizontalPodAutoscalerType) => autoscalerConversion.toStorage(autoscaler) as Stored;

const columns = autoscalerColumns.map(
  (shown): Column<HorizontalPodAutoscalerType> => ({
    ...shown,
    // Table rows may also contain incomplete objects, which cannot be converted.
    value: (object, context) =>
      shown.value(object.spec?.scaleTargetRef ? storedFormOf(object) : (object as unknown as Stored), context),
  }),
);

/** The older version of HorizontalPodAutoscaler, with cpu as its only metric. Stored as autoscaling/v2. */
export const AutoscalingV1HorizontalPodAutoscaler: KindDefinition<HorizontalPodAutoscalerType> = defineKind({
  group: 'autoscaling',
  version: 'v1',
  kind: 'HorizontalPodAutoscaler',
  names: { shortNames: ['hpa'], categories: ['all'] },
  schema: HorizontalPodAutoscalerSchema,
  storage: autoscalerConversion,
  strategy: {
    generation: 'none',
    default(autoscaler) {
      autoscaler.spec.minReplicas ??= 1;
      const stored = storedFormOf(autoscaler);
      if (!stored.spec.metrics?.length) autoscaler.spec.targetCPUUtilizationPercentage = 80;
      // Annotations that the conversion cannot parse would be lost in the conversion back.
      Object.assign(autoscaler, autoscalerConversion.fromStorage(storedFormOf(autoscaler)));
    },
    validate(autoscaler) {
      const errors = newErrors();
      checkAutoscaler(storedFormOf(autoscaler).spec, errors);
      return errors;
    },
    validateStatusUpdate({ status }) {
      const errors = newErrors();
      checkAutoscalerStatus(status, errors);
      return errors;
    },
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns,
});
export type AutoscalingV1HorizontalPodAutoscaler = HorizontalPodAutoscalerType;
