import type { coreV1, Node } from '@keelson/kinds';
import type { CloudInstance, NodeConfig } from '../base/config/agent-config.ts';
import { externalCloud } from './cloud-provider.ts';

/** Annotation for volumes that a controller attaches and detaches. */
const attachAnnotation = 'volumes.kubernetes.io/controller-managed-attach-detach';

/** Annotation that reports the configured address to the cloud controller. */
const providedIpAnnotation = 'alpha.kubernetes.io/provided-node-ip';

/** Taint that prevents pods until a cloud controller has initialized the node and removed it. */
const uninitialized = { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' };

/** Labels of the host and of its cloud instance. */
export function machineLabels(
  nodeName: string,
  architecture: string,
  instance?: CloudInstance,
): Record<string, string> {
  const { instanceType, zone, region } = instance ?? {};
  return {
    'kubernetes.io/hostname': nodeName,
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': architecture,
    'beta.kubernetes.io/os': 'linux',
    'beta.kubernetes.io/arch': architecture,
    ...(instanceType && {
      'node.kubernetes.io/instance-type': instanceType,
      'beta.kubernetes.io/instance-type': instanceType,
    }),
    ...(zone && { 'topology.kubernetes.io/zone': zone, 'failure-domain.beta.kubernetes.io/zone': zone }),
    ...(region && { 'topology.kubernetes.io/region': region, 'failure-domain.beta.kubernetes.io/region': region }),
  };
}

/** The node as it registers itself. */
export function newNode(nodeName: string, architecture: string, config: NodeConfig, status: coreV1.NodeStatus): Node {
  const providerID = config.providerId ?? config.instance?.providerId;
  const taints = config.cloud.provider === externalCloud ? [...config.taints, uninitialized] : config.taints;
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: nodeName,
      labels: { ...machineLabels(nodeName, architecture, config.instance), ...config.labels },
      annotations: annotationsOf(config),
    },
    spec: {
      ...(providerID === undefined ? {} : { providerID }),
      ...(taints.length === 0 ? {} : { taints: taints.map((taint) => ({ ...taint })) }),
    },
    status,
  };
}

/**
 * The merge patch that restores the host's labels and the annotation of an existing node. Labels and taints that were
 * set at registration may have been changed by users and are not restored. Undefined when nothing is missing.
 */
export function reconcilePatch(
  node: Node,
  nodeName: string,
  architecture: string,
  config: NodeConfig,
): object | undefined {
  const labels = missing(node.metadata?.labels, machineLabels(nodeName, architecture, config.instance));
  const annotations = missing(node.metadata?.annotations, annotationsOf(config));
  const attachAnnotated = node.metadata?.annotations?.[attachAnnotation] !== undefined;
  const drop = !config.enableControllerAttachDetach && attachAnnotated ? { [attachAnnotation]: null } : undefined;
  if (labels === undefined && annotations === undefined && drop === undefined) return undefined;
  return {
    metadata: { ...(labels && { labels }), ...((annotations ?? drop) && { annotations: { ...annotations, ...drop } }) },
  };
}

function annotationsOf({ enableControllerAttachDetach, cloud, ip }: NodeConfig): Record<string, string> {
  return {
    ...(enableControllerAttachDetach && { [attachAnnotation]: 'true' }),
    ...(cloud.provider === externalCloud && ip !== undefined && { [providedIpAnnotation]: ip }),
  };
}

/**
 * Addresses of the node: those of the cloud provider take precedence; addresses that an external cloud controller has
 * set are not overwritten.
 */
export function nodeAddresses(
  own: readonly coreV1.NodeAddress[],
  before: readonly coreV1.NodeAddress[],
  { cloud, instance }: Pick<NodeConfig, 'cloud' | 'instance'>,
): coreV1.NodeAddress[] {
  if (cloud.provider === externalCloud && before.length > 0) return [...before];
  return [...(instance?.addresses ?? own)];
}

function missing(
  have: Readonly<Record<string, string>> | undefined,
  want: Readonly<Record<string, string>>,
): Record<string, string> | undefined {
  const entries = Object.entries(want).filter(([key, value]) => have?.[key] !== value);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}
