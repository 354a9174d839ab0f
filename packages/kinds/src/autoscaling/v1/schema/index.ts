export {
  type Scale,
  ScaleSchema,
  type ScaleSpec,
  ScaleSpecSchema,
  type ScaleStatus,
  ScaleStatusSchema,
} from './scale.ts';
