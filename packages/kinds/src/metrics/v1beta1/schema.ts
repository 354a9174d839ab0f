import { type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';

const prefix = 'k8s.io.metrics.pkg.apis.metrics.v1beta1';

const containerMetrics = s.message(`${prefix}.ContainerMetrics`, 'Use of resources by a container.', {
  name: optional(1, s.string(), 'Name of the container.'),
  usage: optional(2, s.map(s.quantity()), 'CPU, averaged over the window, and memory of the working set.'),
});
export interface ContainerMetrics extends Infer<typeof containerMetrics> {}
export const ContainerMetricsSchema: Schema<ContainerMetrics> = containerMetrics;

const measured = {
  timestamp: optional(2, s.time(), 'End of the window.'),
  window: optional(3, s.duration(), 'Time over which the use of CPU is averaged.'),
};

const nodeMetrics = s.message(`${prefix}.NodeMetrics`, 'Use of resources by a node.', {
  ...measured,
  usage: optional(4, s.map(s.quantity()), 'CPU, averaged over the window, and memory of the working set.'),
});
export interface NodeMetrics extends KubeObject, Infer<typeof nodeMetrics> {}
export const NodeMetricsSchema: Schema<NodeMetrics> = nodeMetrics;

const podMetrics = s.message(`${prefix}.PodMetrics`, 'Use of resources by the containers of a pod.', {
  ...measured,
  containers: optional(4, s.list(ContainerMetricsSchema), 'The containers that run.'),
});
export interface PodMetrics extends KubeObject, Infer<typeof podMetrics> {}
export const PodMetricsSchema: Schema<PodMetrics> = podMetrics;
