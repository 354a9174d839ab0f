import { defineKind, type KindDefinition } from '@keelson/core';
import { newErrors } from '../../validation/checks.ts';
import { autoscalerColumns } from './autoscaler-columns.ts';
import { checkAutoscaler, checkAutoscalerStatus } from './check-horizontal-pod-autoscaler.ts';
import {
  HorizontalPodAutoscalerSchema,
  type HorizontalPodAutoscaler as HorizontalPodAutoscalerType,
  type HPAScalingPolicy,
  type HPAScalingRules,
} from './schema/index.ts';

/** Adapts the number of pods of a workload to metrics. Also the stored form of autoscaling/v1. */
export const HorizontalPodAutoscaler: KindDefinition<HorizontalPodAutoscalerType> = defineKind({
  group: 'autoscaling',
  version: 'v2',
  kind: 'HorizontalPodAutoscaler',
  names: { shortNames: ['hpa'], categories: ['all'] },
  schema: HorizontalPodAutoscalerSchema,
  strategy: {
    generation: 'none',
    default: defaultAutoscaler,
    validate({ spec }) {
      const errors = newErrors();
      checkAutoscaler(spec, errors);
      return errors;
    },
    validateStatusUpdate({ status }) {
      const errors = newErrors();
      checkAutoscalerStatus(status, errors);
      return errors;
    },
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns: autoscalerColumns,
});
export type HorizontalPodAutoscaler = HorizontalPodAutoscalerType;

/**
 * Annotations in which autoscaling/v1 shows what only autoscaling/v2 has. They have no meaning in autoscaling/v2 and
 * are never stored.
 */
export const autoscalerAnnotations = {
  metrics: 'autoscaling.alpha.kubernetes.io/metrics',
  behavior: 'autoscaling.alpha.kubernetes.io/behavior',
  currentMetrics: 'autoscaling.alpha.kubernetes.io/current-metrics',
  conditions: 'autoscaling.alpha.kubernetes.io/conditions',
} as const;

function defaultAutoscaler({ metadata, spec }: HorizontalPodAutoscalerType): void {
  for (const name of Object.values(autoscalerAnnotations)) delete metadata?.annotations?.[name];
  spec.minReplicas ??= 1;
  if (!spec.metrics?.length) {
    const target = { type: 'Utilization', averageUtilization: 80 };
    spec.metrics = [{ type: 'Resource', resource: { name: 'cpu', target } }];
  }
  if (!spec.behavior) return;
  spec.behavior.scaleUp = withDefaults(spec.behavior.scaleUp, [
    { type: 'Pods', value: 4, periodSeconds: 15 },
    { type: 'Percent', value: 100, periodSeconds: 15 },
  ]);
  spec.behavior.scaleUp.stabilizationWindowSeconds ??= 0;
  spec.behavior.scaleDown = withDefaults(spec.behavior.scaleDown, [{ type: 'Percent', value: 100, periodSeconds: 15 }]);
}

function withDefaults(rules: HPAScalingRules = {}, policies: HPAScalingPolicy[]): HPAScalingRules {
  rules.selectPolicy ??= 'Max';
  rules.policies ??= policies;
  return rules;
}
