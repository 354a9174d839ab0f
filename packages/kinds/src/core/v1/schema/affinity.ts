import { always, type Infer, labelSelectorSchema, optional, type Schema, s } from '@keelson/core';
import { NodeSelectorSchema, NodeSelectorTermSchema } from './node-selector.ts';

const preferredSchedulingTerm = s.message(
  'k8s.io.api.core.v1.PreferredSchedulingTerm',
  'A weighted preference for nodes.',
  {
    weight: always(1, s.int32(), 'Importance, 1 to 100.'),
    preference: always(2, NodeSelectorTermSchema, 'Conditions on the node.'),
  },
);
export interface PreferredSchedulingTerm extends Infer<typeof preferredSchedulingTerm> {}
export const PreferredSchedulingTermSchema: Schema<PreferredSchedulingTerm> = preferredSchedulingTerm;

const nodeAffinity = s.message('k8s.io.api.core.v1.NodeAffinity', 'Rules about the node a pod runs on.', {
  requiredDuringSchedulingIgnoredDuringExecution: optional(
    1,
    NodeSelectorSchema,
    'What the node must fulfil when the pod is placed.',
  ),
  preferredDuringSchedulingIgnoredDuringExecution: optional(
    2,
    s.list(PreferredSchedulingTermSchema, { listType: 'atomic' }),
    'What is preferred; the sum of the fulfilled weights decides.',
  ),
});
export interface NodeAffinity extends Infer<typeof nodeAffinity> {}
export const NodeAffinitySchema: Schema<NodeAffinity> = nodeAffinity;

const podAffinityTerm = s.message(
  'k8s.io.api.core.v1.PodAffinityTerm',
  'A set of pods, and the node label that defines the topology domains.',
  {
    labelSelector: optional(1, labelSelectorSchema, 'Labels of the pods; unset selects none.'),
    namespaces: optional(
      2,
      s.list(s.string(), { listType: 'atomic' }),
      "Namespaces of the pods, in addition to namespaceSelector; if both are unset, the pod's own.",
    ),
    topologyKey: always(3, s.string(), 'Node label: nodes with the same value are one place.'),
    namespaceSelector: optional(
      4,
      labelSelectorSchema,
      'Labels of the namespaces of the pods; the empty selector selects all.',
    ),
    matchLabelKeys: optional(
      5,
      s.list(s.string(), { listType: 'atomic' }),
      'Keys whose values are taken from the pod to be placed and added to the selector as In.',
    ),
    mismatchLabelKeys: optional(
      6,
      s.list(s.string(), { listType: 'atomic' }),
      'Keys whose values are taken from the pod to be placed and added to the selector as NotIn.',
    ),
  },
);
export interface PodAffinityTerm extends Infer<typeof podAffinityTerm> {}
export const PodAffinityTermSchema: Schema<PodAffinityTerm> = podAffinityTerm;

const weightedPodAffinityTerm = s.message(
  'k8s.io.api.core.v1.WeightedPodAffinityTerm',
  'A weighted preference for other pods.',
  {
    weight: always(1, s.int32(), 'Importance, 1 to 100.'),
    podAffinityTerm: always(2, PodAffinityTermSchema, 'The pods and the place.'),
  },
);
export interface WeightedPodAffinityTerm extends Infer<typeof weightedPodAffinityTerm> {}
export const WeightedPodAffinityTermSchema: Schema<WeightedPodAffinityTerm> = weightedPodAffinityTerm;

const podAffinity = s.message('k8s.io.api.core.v1.PodAffinity', 'Pods near which this one is scheduled.', {
  requiredDuringSchedulingIgnoredDuringExecution: optional(
    1,
    s.list(PodAffinityTermSchema, { listType: 'atomic' }),
    'Rules that a node must meet: such pods run in its topology domain.',
  ),
  preferredDuringSchedulingIgnoredDuringExecution: optional(
    2,
    s.list(WeightedPodAffinityTermSchema, { listType: 'atomic' }),
    'Rules that nodes should meet, with weights: such pods run in their topology domain.',
  ),
});
export interface PodAffinity extends Infer<typeof podAffinity> {}
export const PodAffinitySchema: Schema<PodAffinity> = podAffinity;

const podAntiAffinity = s.message('k8s.io.api.core.v1.PodAntiAffinity', 'Pods near which this one is not scheduled.', {
  requiredDuringSchedulingIgnoredDuringExecution: optional(
    1,
    s.list(PodAffinityTermSchema, { listType: 'atomic' }),
    'Rules that a node must meet: no such pods run in its topology domain.',
  ),
  preferredDuringSchedulingIgnoredDuringExecution: optional(
    2,
    s.list(WeightedPodAffinityTermSchema, { listType: 'atomic' }),
    'Rules that nodes should meet, with weights: no such pods run in their topology domain.',
  ),
});
export interface PodAntiAffinity extends Infer<typeof podAntiAffinity> {}
export const PodAntiAffinitySchema: Schema<PodAntiAffinity> = podAntiAffinity;

const affinity = s.message('k8s.io.api.core.v1.Affinity', 'Rules about where a pod may run.', {
  nodeAffinity: optional(1, NodeAffinitySchema, 'Rules about the node.'),
  podAffinity: optional(2, PodAffinitySchema, 'Pods to be near to.'),
  podAntiAffinity: optional(3, PodAntiAffinitySchema, 'Pods to keep away from.'),
});
export interface Affinity extends Infer<typeof affinity> {}
export const AffinitySchema: Schema<Affinity> = affinity;
