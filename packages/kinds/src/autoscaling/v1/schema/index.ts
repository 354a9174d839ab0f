export {
  type CrossVersionObjectReference,
  CrossVersionObjectReferenceSchema,
  type HorizontalPodAutoscaler,
  HorizontalPodAutoscalerSchema,
  type HorizontalPodAutoscalerSpec,
  HorizontalPodAutoscalerSpecSchema,
  type HorizontalPodAutoscalerStatus,
  HorizontalPodAutoscalerStatusSchema,
} from './horizontal-pod-autoscaler.ts';
export {
  type Scale,
  ScaleSchema,
  type ScaleSpec,
  ScaleSpecSchema,
  type ScaleStatus,
  ScaleStatusSchema,
} from './scale.ts';
