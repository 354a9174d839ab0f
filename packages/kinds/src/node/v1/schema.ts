import { always, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';
import { TolerationSchema } from '../../core/v1/schema/scheduling.ts';

const overhead = s.message('k8s.io.api.node.v1.Overhead', 'Resources for running a pod itself.', {
  podFixed: optional(1, s.map(s.quantity()), 'Amounts for each pod.'),
});
export interface Overhead extends Infer<typeof overhead> {}
export const OverheadSchema: Schema<Overhead> = overhead;

const scheduling = s.message('k8s.io.api.node.v1.Scheduling', 'Nodes that support a runtime class.', {
  nodeSelector: optional(
    1,
    s.map(s.string(), { mapType: 'atomic' }),
    'Labels of such nodes, added to the selectors of pods.',
  ),
  tolerations: optional(2, s.list(TolerationSchema, { listType: 'atomic' }), 'Tolerations that are added to pods.'),
});
export interface Scheduling extends Infer<typeof scheduling> {}
export const SchedulingSchema: Schema<Scheduling> = scheduling;

const runtimeClass = s.message('k8s.io.api.node.v1.RuntimeClass', 'Names a way to run containers.', {
  handler: always(2, s.string(), "Name of the configuration of the node's runtime; it cannot be changed."),
  overhead: optional(3, OverheadSchema, 'Resources for running a pod itself.'),
  scheduling: optional(4, SchedulingSchema, 'Nodes that support the class; all without it.'),
});
export interface RuntimeClass extends KubeObject, Infer<typeof runtimeClass> {}
export const RuntimeClassSchema: Schema<RuntimeClass> = runtimeClass;
