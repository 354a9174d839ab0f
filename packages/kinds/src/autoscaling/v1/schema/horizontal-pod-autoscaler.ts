import { always, embedded, filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';

const crossVersionObjectReference = s.message(
  'k8s.io.api.autoscaling.v1.CrossVersionObjectReference',
  'The object that is meant, by kind and name.',
  {
    kind: always(1, s.string(), 'Kind of the object.'),
    name: always(2, s.string(), 'Name of the object.'),
    apiVersion: optional(3, s.string(), 'Group and version of the object.'),
  },
  { mapType: 'atomic' },
);
export interface CrossVersionObjectReference extends Infer<typeof crossVersionObjectReference> {}
export const CrossVersionObjectReferenceSchema: Schema<CrossVersionObjectReference> = crossVersionObjectReference;

const horizontalPodAutoscalerSpec = s.message(
  'k8s.io.api.autoscaling.v1.HorizontalPodAutoscalerSpec',
  'What is scaled, within which limits.',
  {
    scaleTargetRef: always(1, CrossVersionObjectReferenceSchema, 'Workload that is scaled.'),
    minReplicas: optional(2, s.int32(), 'Least number of pods; 1 by default.', { presence: true }),
    maxReplicas: always(3, s.int32(), 'Greatest number of pods.'),
    targetCPUUtilizationPercentage: optional(
      4,
      s.int32(),
      'Percentage of the requested cpu that the pods are to use on average; 80 by default.',
      { presence: true },
    ),
  },
);
export interface HorizontalPodAutoscalerSpec extends Infer<typeof horizontalPodAutoscalerSpec> {}
export const HorizontalPodAutoscalerSpecSchema: Schema<HorizontalPodAutoscalerSpec> = horizontalPodAutoscalerSpec;

const horizontalPodAutoscalerStatus = s.message(
  'k8s.io.api.autoscaling.v1.HorizontalPodAutoscalerStatus',
  'Observed state of an autoscaler.',
  {
    observedGeneration: optional(1, s.int64(), 'The metadata.generation that the controller has observed.', {
      presence: true,
    }),
    lastScaleTime: optional(2, s.time(), 'When the number of pods was last changed.'),
    currentReplicas: always(3, s.int32(), 'Number of pods when it was last observed.'),
    desiredReplicas: always(4, s.int32(), 'Number of pods that the controller last requested.'),
    currentCPUUtilizationPercentage: optional(
      5,
      s.int32(),
      'Percentage of the requested cpu that the pods use on average.',
      { presence: true },
    ),
  },
);
export interface HorizontalPodAutoscalerStatus extends Infer<typeof horizontalPodAutoscalerStatus> {}
export const HorizontalPodAutoscalerStatusSchema: Schema<HorizontalPodAutoscalerStatus> = horizontalPodAutoscalerStatus;

const horizontalPodAutoscaler = s.message(
  'k8s.io.api.autoscaling.v1.HorizontalPodAutoscaler',
  'Adapts the number of pods of a workload to metrics.',
  {
    spec: embedded(2, HorizontalPodAutoscalerSpecSchema, 'Intended state.'),
    status: filled(3, HorizontalPodAutoscalerStatusSchema, 'Observed state.'),
  },
);
export interface HorizontalPodAutoscaler extends KubeObject, Infer<typeof horizontalPodAutoscaler> {}
export const HorizontalPodAutoscalerSchema: Schema<HorizontalPodAutoscaler> = horizontalPodAutoscaler;
