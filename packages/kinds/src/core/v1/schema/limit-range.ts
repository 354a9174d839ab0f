import { always, embedded, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';

const limitRangeItem = s.message('k8s.io.api.core.v1.LimitRangeItem', 'Limits of the objects of one type.', {
  type: always(1, s.string(), 'Type that is limited: Pod, Container or PersistentVolumeClaim.'),
  max: optional(2, s.map(s.quantity()), 'Highest permitted amounts.'),
  min: optional(3, s.map(s.quantity()), 'Lowest permitted amounts.'),
  default: optional(4, s.map(s.quantity()), 'Limits of containers that state none.'),
  defaultRequest: optional(5, s.map(s.quantity()), 'Requests of containers that state none.'),
  maxLimitRequestRatio: optional(6, s.map(s.quantity()), 'Highest permitted ratio of limit to request.'),
});
export interface LimitRangeItem extends Infer<typeof limitRangeItem> {}
export const LimitRangeItemSchema: Schema<LimitRangeItem> = limitRangeItem;

const limitRangeSpec = s.message('k8s.io.api.core.v1.LimitRangeSpec', 'Limits by type.', {
  limits: always(1, s.list(LimitRangeItemSchema, { listType: 'atomic' }), 'The limits.'),
});
export interface LimitRangeSpec extends Infer<typeof limitRangeSpec> {}
export const LimitRangeSpecSchema: Schema<LimitRangeSpec> = limitRangeSpec;

const limitRange = s.message(
  'k8s.io.api.core.v1.LimitRange',
  'Limits what each object of a namespace may use, and gives defaults.',
  {
    spec: embedded(2, LimitRangeSpecSchema, 'The limits.'),
  },
);
export interface LimitRange extends KubeObject, Infer<typeof limitRange> {}
export const LimitRangeSchema: Schema<LimitRange> = limitRange;
