import {
  always,
  embedded,
  filled,
  type Infer,
  type KubeObject,
  labelSelectorSchema,
  optional,
  type Schema,
  s,
} from '@keelson/core';

const crossVersionObjectReference = s.message(
  'k8s.io.api.autoscaling.v2.CrossVersionObjectReference',
  'The object that is meant, by kind and name.',
  {
    kind: always(1, s.string(), 'Kind of the object.'),
    name: always(2, s.string(), 'Name of the object.'),
    apiVersion: optional(3, s.string(), 'Group and version of the object.'),
  },
);
export interface CrossVersionObjectReference extends Infer<typeof crossVersionObjectReference> {}
export const CrossVersionObjectReferenceSchema: Schema<CrossVersionObjectReference> = crossVersionObjectReference;

const hpaScalingPolicy = s.message(
  'k8s.io.api.autoscaling.v2.HPAScalingPolicy',
  'One limit for the change of the number of pods.',
  {
    type: always(1, s.string(), 'Pods for a number, Percent for a share of the pods.'),
    value: always(2, s.int32(), 'Most that may change within the period.'),
    periodSeconds: always(3, s.int32(), 'Length of the period, at most 1800.'),
  },
);
export interface HPAScalingPolicy extends Infer<typeof hpaScalingPolicy> {}
export const HPAScalingPolicySchema: Schema<HPAScalingPolicy> = hpaScalingPolicy;

const hpaScalingRules = s.message(
  'k8s.io.api.autoscaling.v2.HPAScalingRules',
  'How the number of pods changes in one direction.',
  {
    stabilizationWindowSeconds: optional(
      3,
      s.int32(),
      'Seconds over which earlier recommendations count, at most 3600.',
      { presence: true },
    ),
    selectPolicy: optional(1, s.string(), 'Which policy counts: Max, Min, or Disabled for no change at all.', {
      presence: true,
    }),
    policies: optional(
      2,
      s.list(HPAScalingPolicySchema, { listType: 'atomic' }),
      'Limits for the change; at least one.',
      // An empty list is an error, an absent one gets the default policies.
      { presence: true },
    ),
    tolerance: optional(
      4,
      s.quantity(),
      'Deviation from the target that is ignored, as a ratio; 10 percent by default.',
    ),
  },
);
export interface HPAScalingRules extends Infer<typeof hpaScalingRules> {}
export const HPAScalingRulesSchema: Schema<HPAScalingRules> = hpaScalingRules;

const horizontalPodAutoscalerBehavior = s.message(
  'k8s.io.api.autoscaling.v2.HorizontalPodAutoscalerBehavior',
  'How the number of pods changes in both directions.',
  {
    scaleUp: optional(1, HPAScalingRulesSchema, 'How it grows.'),
    scaleDown: optional(2, HPAScalingRulesSchema, 'How it shrinks.'),
  },
);
export interface HorizontalPodAutoscalerBehavior extends Infer<typeof horizontalPodAutoscalerBehavior> {}
export const HorizontalPodAutoscalerBehaviorSchema: Schema<HorizontalPodAutoscalerBehavior> =
  horizontalPodAutoscalerBehavior;

const metricIdentifier = s.message('k8s.io.api.autoscaling.v2.MetricIdentifier', 'The metric that is meant.', {
  name: always(1, s.string(), 'Name of the metric.'),
  selector: optional(2, labelSelectorSchema, 'Labels of the metric.'),
});
export interface MetricIdentifier extends Infer<typeof metricIdentifier> {}
export const MetricIdentifierSchema: Schema<MetricIdentifier> = metricIdentifier;

const metricTarget = s.message('k8s.io.api.autoscaling.v2.MetricTarget', 'Value of a metric that is to be reached.', {
  type: always(1, s.string(), 'Utilization, Value or AverageValue.'),
  value: optional(2, s.quantity(), 'Value of the metric.'),
  averageValue: optional(3, s.quantity(), 'Value of the metric divided by the number of pods.'),
  averageUtilization: optional(4, s.int32(), 'Percentage of the requests of the pods; for resources only.', {
    presence: true,
  }),
});
export interface MetricTarget extends Infer<typeof metricTarget> {}
export const MetricTargetSchema: Schema<MetricTarget> = metricTarget;

const metricValueStatus = s.message('k8s.io.api.autoscaling.v2.MetricValueStatus', 'Current value of a metric.', {
  value: optional(1, s.quantity(), 'Value of the metric.'),
  averageValue: optional(2, s.quantity(), 'Value of the metric divided by the number of pods.'),
  averageUtilization: optional(3, s.int32(), 'Percentage of the requests of the pods.', { presence: true }),
});
export interface MetricValueStatus extends Infer<typeof metricValueStatus> {}
export const MetricValueStatusSchema: Schema<MetricValueStatus> = metricValueStatus;

const containerResourceMetricSource = s.message(
  'k8s.io.api.autoscaling.v2.ContainerResourceMetricSource',
  'A resource that one container of each pod uses.',
  {
    name: always(1, s.string(), 'Name of the resource.'),
    target: always(2, MetricTargetSchema, 'Value that is to be reached.'),
    container: always(3, s.string(), 'Name of the container.'),
  },
);
export interface ContainerResourceMetricSource extends Infer<typeof containerResourceMetricSource> {}
export const ContainerResourceMetricSourceSchema: Schema<ContainerResourceMetricSource> = containerResourceMetricSource;

const externalMetricSource = s.message(
  'k8s.io.api.autoscaling.v2.ExternalMetricSource',
  'A metric of something outside the cluster.',
  {
    metric: always(1, MetricIdentifierSchema, 'Name of the metric and labels.'),
    target: always(2, MetricTargetSchema, 'Value that is to be reached.'),
  },
);
export interface ExternalMetricSource extends Infer<typeof externalMetricSource> {}
export const ExternalMetricSourceSchema: Schema<ExternalMetricSource> = externalMetricSource;

const objectMetricSource = s.message('k8s.io.api.autoscaling.v2.ObjectMetricSource', 'A metric of one object.', {
  describedObject: always(1, CrossVersionObjectReferenceSchema, 'The object.'),
  target: always(2, MetricTargetSchema, 'Value that is to be reached.'),
  metric: always(3, MetricIdentifierSchema, 'Name of the metric and labels.'),
});
export interface ObjectMetricSource extends Infer<typeof objectMetricSource> {}
export const ObjectMetricSourceSchema: Schema<ObjectMetricSource> = objectMetricSource;

const podsMetricSource = s.message('k8s.io.api.autoscaling.v2.PodsMetricSource', 'A metric of each pod.', {
  metric: always(1, MetricIdentifierSchema, 'Name of the metric and labels.'),
  target: always(2, MetricTargetSchema, 'Value that is to be reached.'),
});
export interface PodsMetricSource extends Infer<typeof podsMetricSource> {}
export const PodsMetricSourceSchema: Schema<PodsMetricSource> = podsMetricSource;

const resourceMetricSource = s.message(
  'k8s.io.api.autoscaling.v2.ResourceMetricSource',
  'A resource that the pods use.',
  {
    name: always(1, s.string(), 'Name of the resource, such as cpu.'),
    target: always(2, MetricTargetSchema, 'Value that is to be reached.'),
  },
);
export interface ResourceMetricSource extends Infer<typeof resourceMetricSource> {}
export const ResourceMetricSourceSchema: Schema<ResourceMetricSource> = resourceMetricSource;

const metricSpec = s.message(
  'k8s.io.api.autoscaling.v2.MetricSpec',
  'A metric and its target. The field that type names is set.',
  {
    type: always(1, s.string(), 'ContainerResource, External, Object, Pods or Resource.'),
    object: optional(2, ObjectMetricSourceSchema, 'A metric of one object.'),
    pods: optional(3, PodsMetricSourceSchema, 'A metric of each pod.'),
    resource: optional(4, ResourceMetricSourceSchema, 'A resource that the pods use.'),
    containerResource: optional(
      7,
      ContainerResourceMetricSourceSchema,
      'A resource that one container of each pod uses.',
    ),
    external: optional(5, ExternalMetricSourceSchema, 'A metric of something outside the cluster.'),
  },
);
export interface MetricSpec extends Infer<typeof metricSpec> {}
export const MetricSpecSchema: Schema<MetricSpec> = metricSpec;

const horizontalPodAutoscalerSpec = s.message(
  'k8s.io.api.autoscaling.v2.HorizontalPodAutoscalerSpec',
  'What is scaled, within which limits, and by which metrics.',
  {
    scaleTargetRef: always(1, CrossVersionObjectReferenceSchema, 'Workload that is scaled.'),
    minReplicas: optional(2, s.int32(), 'Least number of pods; 1 by default.', { presence: true }),
    maxReplicas: always(3, s.int32(), 'Greatest number of pods.'),
    metrics: optional(
      4,
      s.list(MetricSpecSchema, { listType: 'atomic' }),
      'Metrics; the one that asks for most pods counts. 80 percent of the requested cpu by default.',
    ),
    behavior: optional(5, HorizontalPodAutoscalerBehaviorSchema, 'How the number of pods changes.'),
  },
);
export interface HorizontalPodAutoscalerSpec extends Infer<typeof horizontalPodAutoscalerSpec> {}
export const HorizontalPodAutoscalerSpecSchema: Schema<HorizontalPodAutoscalerSpec> = horizontalPodAutoscalerSpec;

const containerResourceMetricStatus = s.message(
  'k8s.io.api.autoscaling.v2.ContainerResourceMetricStatus',
  'Current use of a resource by one container of each pod.',
  {
    name: always(1, s.string(), 'Name of the resource.'),
    current: always(2, MetricValueStatusSchema, 'Current value.'),
    container: always(3, s.string(), 'Name of the container.'),
  },
);
export interface ContainerResourceMetricStatus extends Infer<typeof containerResourceMetricStatus> {}
export const ContainerResourceMetricStatusSchema: Schema<ContainerResourceMetricStatus> = containerResourceMetricStatus;

const externalMetricStatus = s.message(
  'k8s.io.api.autoscaling.v2.ExternalMetricStatus',
  'Current value of an external metric.',
  {
    metric: always(1, MetricIdentifierSchema, 'Name of the metric and labels.'),
    current: always(2, MetricValueStatusSchema, 'Current value.'),
  },
);
export interface ExternalMetricStatus extends Infer<typeof externalMetricStatus> {}
export const ExternalMetricStatusSchema: Schema<ExternalMetricStatus> = externalMetricStatus;

const objectMetricStatus = s.message(
  'k8s.io.api.autoscaling.v2.ObjectMetricStatus',
  'Current value of a metric of one object.',
  {
    metric: always(1, MetricIdentifierSchema, 'Name of the metric and labels.'),
    current: always(2, MetricValueStatusSchema, 'Current value.'),
    describedObject: always(3, CrossVersionObjectReferenceSchema, 'The object.'),
  },
);
export interface ObjectMetricStatus extends Infer<typeof objectMetricStatus> {}
export const ObjectMetricStatusSchema: Schema<ObjectMetricStatus> = objectMetricStatus;

const podsMetricStatus = s.message(
  'k8s.io.api.autoscaling.v2.PodsMetricStatus',
  'Current value of a metric of each pod.',
  {
    metric: always(1, MetricIdentifierSchema, 'Name of the metric and labels.'),
    current: always(2, MetricValueStatusSchema, 'Current value.'),
  },
);
export interface PodsMetricStatus extends Infer<typeof podsMetricStatus> {}
export const PodsMetricStatusSchema: Schema<PodsMetricStatus> = podsMetricStatus;

const resourceMetricStatus = s.message(
  'k8s.io.api.autoscaling.v2.ResourceMetricStatus',
  'Current use of a resource by the pods.',
  {
    name: always(1, s.string(), 'Name of the resource.'),
    current: always(2, MetricValueStatusSchema, 'Current value.'),
  },
);
export interface ResourceMetricStatus extends Infer<typeof resourceMetricStatus> {}
export const ResourceMetricStatusSchema: Schema<ResourceMetricStatus> = resourceMetricStatus;

const metricStatus = s.message(
  'k8s.io.api.autoscaling.v2.MetricStatus',
  'Last read value of a metric. The field that type names is set.',
  {
    type: always(1, s.string(), 'ContainerResource, External, Object, Pods or Resource.'),
    object: optional(2, ObjectMetricStatusSchema, 'A metric of one object.'),
    pods: optional(3, PodsMetricStatusSchema, 'A metric of each pod.'),
    resource: optional(4, ResourceMetricStatusSchema, 'A resource that the pods use.'),
    containerResource: optional(
      7,
      ContainerResourceMetricStatusSchema,
      'A resource that one container of each pod uses.',
    ),
    external: optional(5, ExternalMetricStatusSchema, 'A metric of something outside the cluster.'),
  },
);
export interface MetricStatus extends Infer<typeof metricStatus> {}
export const MetricStatusSchema: Schema<MetricStatus> = metricStatus;

const horizontalPodAutoscalerCondition = s.message(
  'k8s.io.api.autoscaling.v2.HorizontalPodAutoscalerCondition',
  'One observed condition of an autoscaler.',
  {
    type: always(1, s.string(), 'Type of the condition: AbleToScale, ScalingActive or ScalingLimited.'),
    status: always(2, s.string(), 'True, False or Unknown.'),
    lastTransitionTime: optional(3, s.time(), 'When status last changed.'),
    reason: optional(4, s.string(), 'Reason for the last transition, one CamelCase word.'),
    message: optional(5, s.string(), 'Human-readable message about the last change.'),
  },
);
export interface HorizontalPodAutoscalerCondition extends Infer<typeof horizontalPodAutoscalerCondition> {}
export const HorizontalPodAutoscalerConditionSchema: Schema<HorizontalPodAutoscalerCondition> =
  horizontalPodAutoscalerCondition;

const horizontalPodAutoscalerStatus = s.message(
  'k8s.io.api.autoscaling.v2.HorizontalPodAutoscalerStatus',
  'Observed state of an autoscaler.',
  {
    observedGeneration: optional(1, s.int64(), 'The metadata.generation that the controller has observed.', {
      presence: true,
    }),
    lastScaleTime: optional(2, s.time(), 'When the number of pods was last changed.'),
    currentReplicas: optional(3, s.int32(), 'Number of pods when it was last observed.'),
    desiredReplicas: always(4, s.int32(), 'Number of pods that the controller last requested.'),
    currentMetrics: filled(5, s.list(MetricStatusSchema, { listType: 'atomic' }), 'Last read values of the metrics.'),
    conditions: optional(6, s.listByKey(HorizontalPodAutoscalerConditionSchema, 'type'), 'Latest observations.'),
  },
);
export interface HorizontalPodAutoscalerStatus extends Infer<typeof horizontalPodAutoscalerStatus> {}
export const HorizontalPodAutoscalerStatusSchema: Schema<HorizontalPodAutoscalerStatus> = horizontalPodAutoscalerStatus;

const horizontalPodAutoscaler = s.message(
  'k8s.io.api.autoscaling.v2.HorizontalPodAutoscaler',
  'Adapts the number of pods of a workload to metrics.',
  {
    spec: embedded(2, HorizontalPodAutoscalerSpecSchema, 'Intended state.'),
    status: filled(3, HorizontalPodAutoscalerStatusSchema, 'Observed state.'),
  },
);
export interface HorizontalPodAutoscaler extends KubeObject, Infer<typeof horizontalPodAutoscaler> {}
export const HorizontalPodAutoscalerSchema: Schema<HorizontalPodAutoscaler> = horizontalPodAutoscaler;
