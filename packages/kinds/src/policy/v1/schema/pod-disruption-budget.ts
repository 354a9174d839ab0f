import {
  always,
  conditionSchema,
  embedded,
  filled,
  type Infer,
  type KubeObject,
  labelSelectorSchema,
  optional,
  type Schema,
  s,
} from '@keelson/core';

const podDisruptionBudgetSpec = s.message(
  'k8s.io.api.policy.v1.PodDisruptionBudgetSpec',
  'How many pods of a set may be missing because of evictions.',
  {
    minAvailable: optional(
      1,
      s.intOrString(),
      'Pods that must remain: a number or a percentage. Not together with maxUnavailable.',
      { presence: true },
    ),
    selector: optional(2, labelSelectorSchema, 'Labels of the pods; an empty selector means all of the namespace.', {
      patchStrategy: 'replace',
    }),
    maxUnavailable: optional(
      3,
      s.intOrString(),
      'Pods that may be missing: a number or a percentage. Not together with minAvailable.',
      { presence: true },
    ),
    unhealthyPodEvictionPolicy: optional(
      4,
      s.string({ values: ['AlwaysAllow', 'IfHealthyBudget'] }),
      'IfHealthyBudget, or AlwaysAllow to evict running pods that are not ready at any time.',
      { presence: true },
    ),
  },
);
export interface PodDisruptionBudgetSpec extends Infer<typeof podDisruptionBudgetSpec> {}
export const PodDisruptionBudgetSpecSchema: Schema<PodDisruptionBudgetSpec> = podDisruptionBudgetSpec;

const podDisruptionBudgetStatus = s.message(
  'k8s.io.api.policy.v1.PodDisruptionBudgetStatus',
  'Observed state of the pods of a budget.',
  {
    observedGeneration: optional(1, s.int64(), 'The metadata.generation that the controller has observed.'),
    disruptedPods: optional(
      2,
      s.map(s.time()),
      'Pods whose eviction was allowed and not yet seen by the controller, with the time of the permission.',
    ),
    disruptionsAllowed: always(3, s.int32(), 'Evictions that are allowed now.'),
    currentHealthy: always(4, s.int32(), 'Pods that are healthy.'),
    desiredHealthy: always(5, s.int32(), 'Pods that must be healthy.'),
    expectedPods: always(6, s.int32(), 'Pods that the budget counts.'),
    conditions: optional(7, s.listByKey(conditionSchema, 'type'), 'Latest observations.'),
  },
);
export interface PodDisruptionBudgetStatus extends Infer<typeof podDisruptionBudgetStatus> {}
export const PodDisruptionBudgetStatusSchema: Schema<PodDisruptionBudgetStatus> = podDisruptionBudgetStatus;

const podDisruptionBudget = s.message(
  'k8s.io.api.policy.v1.PodDisruptionBudget',
  'Limits how many pods of a set are evicted at once.',
  {
    spec: embedded(2, PodDisruptionBudgetSpecSchema, 'How many pods may be missing.'),
    status: filled(3, PodDisruptionBudgetStatusSchema, 'Observed state.'),
  },
);
export interface PodDisruptionBudget extends KubeObject, Infer<typeof podDisruptionBudget> {}
export const PodDisruptionBudgetSchema: Schema<PodDisruptionBudget> = podDisruptionBudget;
