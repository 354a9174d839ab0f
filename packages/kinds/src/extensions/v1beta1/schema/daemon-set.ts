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
import * as apps from '../../../apps/v1/schema/index.ts';
import { PodTemplateSpecSchema } from '../../../core/v1/schema/pod.ts';
import { versionTwin } from '../../../versions/version-twin.ts';

const twin = versionTwin('k8s.io.api.apps.v1.', 'k8s.io.api.extensions.v1beta1.');

export type RollingUpdateDaemonSet = apps.RollingUpdateDaemonSet;
export const RollingUpdateDaemonSetSchema: Schema<RollingUpdateDaemonSet> = twin(apps.RollingUpdateDaemonSetSchema);

export type DaemonSetUpdateStrategy = apps.DaemonSetUpdateStrategy;
export const DaemonSetUpdateStrategySchema: Schema<DaemonSetUpdateStrategy> = twin(apps.DaemonSetUpdateStrategySchema);

const daemonSetSpec = s.message('k8s.io.api.extensions.v1beta1.DaemonSetSpec', 'Intended state of a daemon set.', {
  selector: optional(
    1,
    labelSelectorSchema,
    'Labels by which the pods are recognised; those of the template by default.',
  ),
  template: always(2, PodTemplateSpecSchema, 'Template of the pods; its node rules select the nodes.'),
  updateStrategy: filled(3, DaemonSetUpdateStrategySchema, 'How pods are replaced by new ones.'),
  minReadySeconds: optional(4, s.int32(), 'Seconds for which a pod must have been ready to count as available.'),
  templateGeneration: optional(5, s.int64(), 'Counts changes of the template; kept by the server.'),
  revisionHistoryLimit: optional(6, s.int32(), 'How many old revisions are kept for rolling back.', { presence: true }),
});
export interface DaemonSetSpec extends Infer<typeof daemonSetSpec> {}
export const DaemonSetSpecSchema: Schema<DaemonSetSpec> = daemonSetSpec;

export type DaemonSetCondition = apps.DaemonSetCondition;
export const DaemonSetConditionSchema: Schema<DaemonSetCondition> = twin(apps.DaemonSetConditionSchema);

export type DaemonSetStatus = apps.DaemonSetStatus;
export const DaemonSetStatusSchema: Schema<DaemonSetStatus> = twin(apps.DaemonSetStatusSchema);

const daemonSet = s.message('k8s.io.api.extensions.v1beta1.DaemonSet', 'Keeps one pod running on every fitting node.', {
  spec: embedded(2, DaemonSetSpecSchema, 'Intended state.'),
  status: filled(3, DaemonSetStatusSchema, 'Observed state.'),
});
export interface DaemonSet extends KubeObject, Infer<typeof daemonSet> {}
export const DaemonSetSchema: Schema<DaemonSet> = daemonSet;
