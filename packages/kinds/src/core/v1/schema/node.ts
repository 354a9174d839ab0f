import { always, filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';
import { NodeConfigSourceSchema } from './node-config.ts';
import { NodeStatusSchema } from './node-status.ts';

const taint = s.message('k8s.io.api.core.v1.Taint', 'Keeps pods off a node unless they tolerate it.', {
  key: always(1, s.string(), 'Key of the taint.'),
  value: optional(2, s.string(), 'Value that belongs to the key.'),
  effect: always(
    3,
    s.string({ values: ['NoExecute', 'NoSchedule', 'PreferNoSchedule'] }),
    'What happens to pods without toleration: NoSchedule, PreferNoSchedule or NoExecute.',
  ),
  timeAdded: optional(4, s.time(), 'When the taint was set.'),
});
export interface Taint extends Infer<typeof taint> {}
export const TaintSchema: Schema<Taint> = taint;

const nodeSpec = s.message('k8s.io.api.core.v1.NodeSpec', 'Intended state of a node.', {
  podCIDR: optional(1, s.string(), 'Address range for the pods of the node.'),
  podCIDRs: optional(7, s.set(s.string()), 'Address ranges, one for each IP family; the first equals podCIDR.'),
  providerID: optional(3, s.string(), 'Name of the machine at its provider: provider://id.'),
  unschedulable: optional(4, s.bool(), 'True keeps new pods away.'),
  taints: optional(5, s.list(TaintSchema, { listType: 'atomic' }), 'Taints of the node.'),
  configSource: optional(
    6,
    NodeConfigSourceSchema,
    "Source of the agent's configuration, for agents with dynamic configuration.",
  ),
  externalID: optional(2, s.string(), 'Deprecated name of the machine; ignored.'),
});
export interface NodeSpec extends Infer<typeof nodeSpec> {}
export const NodeSpecSchema: Schema<NodeSpec> = nodeSpec;

const node = s.message('k8s.io.api.core.v1.Node', 'A machine that runs pods.', {
  spec: filled(2, NodeSpecSchema, 'Intended state.'),
  status: filled(3, NodeStatusSchema, 'Observed state.'),
});
export interface Node extends KubeObject, Infer<typeof node> {}
export const NodeSchema: Schema<Node> = node;
