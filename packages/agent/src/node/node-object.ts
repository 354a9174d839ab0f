import type { coreV1, Node } from '@keelson/kinds';
import type { NodeConfig } from '../contracts/agent-config.ts';

/** Annotation that says who attaches volumes. */
const attachAnnotation = 'volumes.kubernetes.io/controller-managed-attach-detach';

/** Labels that follow from the machine. */
export function machineLabels(nodeName: string, architecture: string): Record<string, string> {
  return {
    'kubernetes.io/hostname': nodeName,
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': architecture,
    'beta.kubernetes.io/os': 'linux',
    'beta.kubernetes.io/arch': architecture,
  };
}

/** The node as it registers itself. */
export function newNode(nodeName: string, architecture: string, config: NodeConfig, status: coreV1.NodeStatus): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: nodeName,
      labels: { ...machineLabels(nodeName, architecture), ...config.labels },
      annotations: annotationsOf(config),
    },
    spec: {
      ...(config.providerId === undefined ? {} : { providerID: config.providerId }),
      ...(config.taints.length === 0 ? {} : { taints: config.taints.map((taint) => ({ ...taint })) }),
    },
    status,
  };
}

/**
 * The merge patch that sets right what an existing node lacks: labels of the machine and the annotation. Labels that were chosen at registration,
 * and taints, belong to whoever changed them since. Undefined when nothing is missing.
 */
export function reconcilePatch(node: Node, nodeName: string, architecture: string, config: NodeConfig): object | undefined {
  const labels = missing(node.metadata?.labels, machineLabels(nodeName, architecture));
  const annotations = missing(node.metadata?.annotations, annotationsOf(config));
  const attachAnnotated = node.metadata?.annotations?.[attachAnnotation] !== undefined;
  const drop = !config.enableControllerAttachDetach && attachAnnotated ? { [attachAnnotation]: null } : undefined;
  if (labels === undefined && annotations === undefined && drop === undefined) return undefined;
  return { metadata: { ...(labels && { labels }), ...((annotations ?? drop) && { annotations: { ...annotations, ...drop } }) } };
}

function annotationsOf({ enableControllerAttachDetach }: NodeConfig): Record<string, string> {
  return enableControllerAttachDetach ? { [attachAnnotation]: 'true' } : {};
}

function missing(
  have: Readonly<Record<string, string>> | undefined,
  want: Readonly<Record<string, string>>,
): Record<string, string> | undefined {
  const entries = Object.entries(want).filter(([key, value]) => have?.[key] !== value);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}
