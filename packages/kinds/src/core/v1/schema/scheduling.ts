import { always, type Infer, labelSelectorSchema, optional, type Schema, s } from '@keelson/core';

const toleration = s.message('k8s.io.api.core.v1.Toleration', 'Lets a pod run in spite of taints.', {
  key: optional(1, s.string(), 'Taint key; empty together with operator Exists matches every key.'),
  operator: optional(
    2,
    s.string({ values: ['Equal', 'Exists'] }),
    'Equal (the default) compares the value, Exists does not; Lt and Gt compare integers.',
  ),
  value: optional(3, s.string(), 'Value of the taint; empty for Exists.'),
  effect: optional(
    4,
    s.string({ values: ['NoExecute', 'NoSchedule', 'PreferNoSchedule'] }),
    'NoSchedule, PreferNoSchedule or NoExecute; empty matches every effect.',
  ),
  tolerationSeconds: optional(5, s.int64(), 'Seconds for which a NoExecute taint is borne; unset = for ever.', {
    presence: true,
  }),
});
export interface Toleration extends Infer<typeof toleration> {}
export const TolerationSchema: Schema<Toleration> = toleration;

const topologySpreadConstraint = s.message(
  'k8s.io.api.core.v1.TopologySpreadConstraint',
  'How evenly pods are spread over topology domains.',
  {
    maxSkew: always(
      1,
      s.int32(),
      'Largest difference in the number of matching pods between two topology domains, above 0.',
    ),
    topologyKey: always(2, s.string(), 'Node label: nodes with the same value are one place.'),
    whenUnsatisfiable: always(
      3,
      s.string({ values: ['DoNotSchedule', 'ScheduleAnyway'] }),
      'DoNotSchedule leaves the pod pending, ScheduleAnyway only prefers better topology domains.',
    ),
    labelSelector: optional(4, labelSelectorSchema, 'Pods that are counted.'),
    minDomains: optional(
      5,
      s.int32(),
      'Number of topology domains below which the smallest count is taken as 0; for DoNotSchedule.',
      {
        presence: true,
      },
    ),
    nodeAffinityPolicy: optional(
      6,
      s.string({ values: ['Honor', 'Ignore'] }),
      "Whether nodes that the pod's node rules exclude count: Honor (the default) or Ignore.",
      { presence: true },
    ),
    nodeTaintsPolicy: optional(
      7,
      s.string({ values: ['Honor', 'Ignore'] }),
      'Whether taints that the pod does not tolerate exclude a node: Honor or Ignore (the default).',
      { presence: true },
    ),
    matchLabelKeys: optional(
      8,
      s.list(s.string(), { listType: 'atomic' }),
      'Label keys whose values are taken from the pod itself and added to labelSelector.',
    ),
  },
);
export interface TopologySpreadConstraint extends Infer<typeof topologySpreadConstraint> {}
export const TopologySpreadConstraintSchema: Schema<TopologySpreadConstraint> = topologySpreadConstraint;

const podSchedulingGate = s.message(
  'k8s.io.api.core.v1.PodSchedulingGate',
  'A reason why a pod is not to be scheduled yet.',
  {
    name: always(1, s.string(), 'Name of the gate, unique in the pod.'),
  },
);
export interface PodSchedulingGate extends Infer<typeof podSchedulingGate> {}
export const PodSchedulingGateSchema: Schema<PodSchedulingGate> = podSchedulingGate;

const podSchedulingGroup = s.message(
  'k8s.io.api.core.v1.PodSchedulingGroup',
  'The group with which a pod is scheduled.',
  {
    podGroupName: optional(1, s.string(), 'Name of the PodGroup in the same namespace.', { presence: true }),
  },
);
export interface PodSchedulingGroup extends Infer<typeof podSchedulingGroup> {}
export const PodSchedulingGroupSchema: Schema<PodSchedulingGroup> = podSchedulingGroup;

const podReadinessGate = s.message(
  'k8s.io.api.core.v1.PodReadinessGate',
  'A further condition for the readiness of a pod.',
  {
    conditionType: always(1, s.string(), "Type of the condition that must be True in the pod's status."),
  },
);
export interface PodReadinessGate extends Infer<typeof podReadinessGate> {}
export const PodReadinessGateSchema: Schema<PodReadinessGate> = podReadinessGate;
