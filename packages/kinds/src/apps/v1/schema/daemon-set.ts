import {
  always,
  embedded,
  filled,
  type Infer,
  type KubeObject,
  labelSelectorSchema,
  optional,
  required,
  type Schema,
  s,
} from '@keelson/core';
import { PodTemplateSpecSchema } from '../../../core/v1/schema/pod.ts';

const rollingUpdateDaemonSet = s.message('k8s.io.api.apps.v1.RollingUpdateDaemonSet', 'Pace of a rolling update.', {
  maxUnavailable: optional(
    1,
    s.intOrString(),
    'How many nodes may be without an available pod: a number or a percentage, rounded up. Not 0 together with maxSurge.',
    { presence: true },
  ),
  maxSurge: optional(
    2,
    s.intOrString(),
    'How many nodes may have an old and a new pod at once: a number or a percentage, rounded up.',
    { presence: true },
  ),
});
export interface RollingUpdateDaemonSet extends Infer<typeof rollingUpdateDaemonSet> {}
export const RollingUpdateDaemonSetSchema: Schema<RollingUpdateDaemonSet> = rollingUpdateDaemonSet;

const daemonSetUpdateStrategy = s.message(
  'k8s.io.api.apps.v1.DaemonSetUpdateStrategy',
  'How pods are replaced by new ones.',
  {
    type: optional(
      1,
      s.string({ values: ['OnDelete', 'RollingUpdate'] }),
      'RollingUpdate, or OnDelete to replace a pod only after it was deleted.',
    ),
    rollingUpdate: optional(2, RollingUpdateDaemonSetSchema, 'Pace, for RollingUpdate only.'),
  },
);
export interface DaemonSetUpdateStrategy extends Infer<typeof daemonSetUpdateStrategy> {}
export const DaemonSetUpdateStrategySchema: Schema<DaemonSetUpdateStrategy> = daemonSetUpdateStrategy;

const daemonSetSpec = s.message('k8s.io.api.apps.v1.DaemonSetSpec', 'Intended state of a daemon set.', {
  selector: required(1, labelSelectorSchema, 'Labels by which the pods are recognised; must fit the template.'),
  template: always(2, PodTemplateSpecSchema, 'Template of the pods; its node rules select the nodes.'),
  updateStrategy: filled(3, DaemonSetUpdateStrategySchema, 'How pods are replaced by new ones.'),
  minReadySeconds: optional(4, s.int32(), 'Seconds for which a pod must have been ready to count as available.'),
  revisionHistoryLimit: optional(6, s.int32(), 'How many old revisions are kept for rolling back.', { presence: true }),
});
export interface DaemonSetSpec extends Infer<typeof daemonSetSpec> {}
export const DaemonSetSpecSchema: Schema<DaemonSetSpec> = daemonSetSpec;

const daemonSetCondition = s.message(
  'k8s.io.api.apps.v1.DaemonSetCondition',
  'One observed condition of a daemon set.',
  {
    type: always(1, s.string(), 'Type of the condition.'),
    status: always(2, s.string(), 'True, False or Unknown.'),
    lastTransitionTime: optional(3, s.time(), 'When status last changed.'),
    reason: optional(4, s.string(), 'Reason for the last transition, one CamelCase word.'),
    message: optional(5, s.string(), 'Human-readable message about the last change.'),
  },
);
export interface DaemonSetCondition extends Infer<typeof daemonSetCondition> {}
export const DaemonSetConditionSchema: Schema<DaemonSetCondition> = daemonSetCondition;

const daemonSetStatus = s.message(
  'k8s.io.api.apps.v1.DaemonSetStatus',
  'Observed state of a daemon set, counted in nodes.',
  {
    currentNumberScheduled: always(1, s.int32(), 'Nodes that have a pod and should.'),
    numberMisscheduled: always(2, s.int32(), 'Nodes that have a pod and should not.'),
    desiredNumberScheduled: always(3, s.int32(), 'Nodes that should have a pod.'),
    numberReady: always(4, s.int32(), 'Nodes that should have a pod and whose pod is ready.'),
    observedGeneration: optional(5, s.int64(), 'The metadata.generation that the controller has observed.'),
    updatedNumberScheduled: optional(6, s.int32(), 'Nodes whose pod is of the present template.'),
    numberAvailable: optional(7, s.int32(), 'Nodes whose pod has been ready for minReadySeconds.'),
    numberUnavailable: optional(8, s.int32(), 'Nodes that should have an available pod and have not.'),
    collisionCount: optional(9, s.int32(), "How often a name for a new revision was taken; part of the name's hash.", {
      presence: true,
    }),
    conditions: optional(10, s.listByKey(DaemonSetConditionSchema, 'type'), 'Latest observations.'),
  },
);
export interface DaemonSetStatus extends Infer<typeof daemonSetStatus> {}
export const DaemonSetStatusSchema: Schema<DaemonSetStatus> = daemonSetStatus;

const daemonSet = s.message('k8s.io.api.apps.v1.DaemonSet', 'Keeps one pod running on every fitting node.', {
  spec: embedded(2, DaemonSetSpecSchema, 'Intended state.'),
  status: filled(3, DaemonSetStatusSchema, 'Observed state.'),
});
export interface DaemonSet extends KubeObject, Infer<typeof daemonSet> {}
export const DaemonSetSchema: Schema<DaemonSet> = daemonSet;
