import { type Column, defineKind, type FieldError, type KindDefinition } from '@keelson/core';
import { ageColumn, column, nameColumn, wide } from '../../columns/columns.ts';
import { checkNode, checkNodeStatus, checkNodeUpdate, nodeWarnings } from './node/check-node.ts';
import { nodeProxySubresource } from './node/proxy.ts';
import { NodeSchema, type Node as NodeType } from './schema/index.ts';

const rolePrefix = 'node-role.kubernetes.io/';

const columns: readonly Column<NodeType>[] = [
  nameColumn(),
  column('Status', 'string', 'Whether pods can run on it.', statusText),
  column('Roles', 'string', 'Roles, from its labels.', rolesText),
  ageColumn,
  column('Version', 'string', 'Version of the node agent.', (node) => node.status?.nodeInfo?.kubeletVersion ?? ''),
  wide('Internal-IP', 'string', 'Address inside the cluster.', (node) => addressOf(node, 'InternalIP')),
  wide('External-IP', 'string', 'Address outside the cluster.', (node) => addressOf(node, 'ExternalIP')),
  wide('OS-Image', 'string', 'Operating system.', (node) => node.status?.nodeInfo?.osImage || '<unknown>'),
  wide('Kernel-Version', 'string', 'Kernel.', (node) => node.status?.nodeInfo?.kernelVersion || '<unknown>'),
  wide(
    'Container-Runtime',
    'string',
    'Container runtime.',
    (node) => node.status?.nodeInfo?.containerRuntimeVersion || '<unknown>',
  ),
];

/**
 * A machine that runs pods. It registers itself with its status; later writes of the status go through the subresource.
 */
export const Node: KindDefinition<NodeType> = defineKind({
  group: '',
  version: 'v1',
  kind: 'Node',
  scope: 'Cluster',
  names: { shortNames: ['no'] },
  schema: NodeSchema,
  strategy: {
    generation: 'none',
    keepsStatusOnCreate: true,
    default: defaultNode,
    export(node, exact) {
      if (!exact) node.status = {};
    },
    validate: (node): FieldError[] => checkNode(node),
    validateUpdate: checkNodeUpdate,
    warnings: nodeWarnings,
    validateStatusUpdate: (node): FieldError[] => checkNodeStatus(node),
  },
  subresources: [{ type: 'status', name: 'status' }, nodeProxySubresource],
  selectableFields: [['spec.unschedulable', (node) => String(node.spec?.unschedulable ?? false)]],
  columns,
});
export type Node = NodeType;

function defaultNode(node: NodeType): void {
  const { status, spec } = node;
  if (status?.capacity && Object.keys(status.allocatable ?? {}).length === 0)
    status.allocatable = { ...status.capacity };
  if (!spec) return;
  // The older field wins when a client changed only it.
  if (spec.podCIDR && spec.podCIDR !== spec.podCIDRs?.[0]) spec.podCIDRs = [spec.podCIDR];
  const [first] = spec.podCIDRs ?? [];
  if (first && !spec.podCIDR) spec.podCIDR = first;
}

function statusText(node: NodeType): string {
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  const word = ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady';
  return node.spec?.unschedulable ? `${word},SchedulingDisabled` : word;
}

function rolesText(node: NodeType): string {
  const roles = new Set<string>();
  for (const [key, value] of Object.entries(node.metadata?.labels ?? {})) {
    if (key.startsWith(rolePrefix) && key.length > rolePrefix.length) roles.add(key.slice(rolePrefix.length));
    else if (key === 'kubernetes.io/role' && value) roles.add(value);
  }
  return roles.size === 0 ? '<none>' : [...roles].sort().join(',');
}

function addressOf(node: NodeType, type: string): string {
  return node.status?.addresses?.find((address) => address.type === type)?.address ?? '<none>';
}
