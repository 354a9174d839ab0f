import {
  always,
  embedded,
  filled,
  type Infer,
  type KubeObject,
  objectMetaSchema,
  optional,
  type Schema,
  s,
  typeMetaFields,
} from '@keelson/core';

const scaleSpec = s.message('k8s.io.api.extensions.v1beta1.ScaleSpec', 'Desired size.', {
  replicas: optional(1, s.int32(), 'Desired number of pods.'),
});
export interface ScaleSpec extends Infer<typeof scaleSpec> {}
export const ScaleSpecSchema: Schema<ScaleSpec> = scaleSpec;

const scaleStatus = s.message('k8s.io.api.extensions.v1beta1.ScaleStatus', 'Observed size.', {
  replicas: always(1, s.int32(), 'Observed number of pods.'),
  selector: optional(2, s.map(s.string(), { mapType: 'atomic' }), 'Labels of the counted pods, as a map.'),
  targetSelector: optional(
    3,
    s.string(),
    'Labels of the counted pods, as a selector text; for selectors that no map can express.',
  ),
});
export interface ScaleStatus extends Infer<typeof scaleStatus> {}
export const ScaleStatusSchema: Schema<ScaleStatus> = scaleStatus;

const scale = s.message('k8s.io.api.extensions.v1beta1.Scale', 'Size of something that has replicas.', {
  ...typeMetaFields,
  metadata: optional(1, objectMetaSchema, 'Name and namespace of the object.'),
  spec: embedded(2, ScaleSpecSchema, 'Desired size.'),
  status: filled(3, ScaleStatusSchema, 'Observed size.'),
});
export interface Scale extends KubeObject, Infer<typeof scale> {}
export const ScaleSchema: Schema<Scale> = scale;
