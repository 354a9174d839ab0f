import { always, filled, type Infer, optional, type Schema, s } from '@keelson/core';
import { NodeConfigSourceSchema } from './node-config.ts';

const nodeCondition = s.message('k8s.io.api.core.v1.NodeCondition', 'One observed condition of a node.', {
  type: always(
    1,
    s.string(),
    'Type of the condition: Ready, MemoryPressure, DiskPressure, PIDPressure, NetworkUnavailable and others.',
  ),
  status: always(2, s.string(), 'True, False or Unknown.'),
  lastHeartbeatTime: optional(3, s.time(), 'Time of the last observation.'),
  lastTransitionTime: optional(4, s.time(), 'When status last changed.'),
  reason: optional(5, s.string(), 'Reason for the last transition, one CamelCase word.'),
  message: optional(6, s.string(), 'Human-readable message about the last change.'),
});
export interface NodeCondition extends Infer<typeof nodeCondition> {}
export const NodeConditionSchema: Schema<NodeCondition> = nodeCondition;

const nodeAddress = s.message('k8s.io.api.core.v1.NodeAddress', 'An address of a node.', {
  type: always(1, s.string(), 'Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.'),
  address: always(2, s.string(), 'The address.'),
});
export interface NodeAddress extends Infer<typeof nodeAddress> {}
export const NodeAddressSchema: Schema<NodeAddress> = nodeAddress;

const daemonEndpoint = s.message('k8s.io.api.core.v1.DaemonEndpoint', 'Where a daemon listens.', {
  Port: always(1, s.int32(), 'Port number.'),
});
export interface DaemonEndpoint extends Infer<typeof daemonEndpoint> {}
export const DaemonEndpointSchema: Schema<DaemonEndpoint> = daemonEndpoint;

const nodeDaemonEndpoints = s.message(
  'k8s.io.api.core.v1.NodeDaemonEndpoints',
  'Daemons of a node that serve requests.',
  {
    kubeletEndpoint: filled(1, DaemonEndpointSchema, 'The node agent.'),
  },
);
export interface NodeDaemonEndpoints extends Infer<typeof nodeDaemonEndpoints> {}
export const NodeDaemonEndpointsSchema: Schema<NodeDaemonEndpoints> = nodeDaemonEndpoints;

const nodeSwapStatus = s.message('k8s.io.api.core.v1.NodeSwapStatus', 'Swap space of a node.', {
  capacity: optional(1, s.int64(), 'Size in bytes.', { presence: true }),
});
export interface NodeSwapStatus extends Infer<typeof nodeSwapStatus> {}
export const NodeSwapStatusSchema: Schema<NodeSwapStatus> = nodeSwapStatus;

const nodeSystemInfo = s.message('k8s.io.api.core.v1.NodeSystemInfo', 'What kind of machine a node is.', {
  machineID: always(1, s.string(), 'Unique ID of the machine, from its operating system.'),
  systemUUID: always(2, s.string(), 'Unique ID of the hardware.'),
  bootID: always(3, s.string(), 'ID that changes with each boot.'),
  kernelVersion: always(4, s.string(), 'Version of the kernel.'),
  osImage: always(5, s.string(), "Name of the operating system's release."),
  containerRuntimeVersion: always(6, s.string(), 'Container runtime and its version: name://version.'),
  kubeletVersion: always(7, s.string(), 'Version of the node agent.'),
  kubeProxyVersion: always(8, s.string(), 'Version of the service proxy; no longer kept.'),
  operatingSystem: always(9, s.string(), 'Operating system, e.g. linux.'),
  architecture: always(10, s.string(), 'Processor architecture, e.g. amd64.'),
  swap: optional(11, NodeSwapStatusSchema, 'Swap space.'),
});
export interface NodeSystemInfo extends Infer<typeof nodeSystemInfo> {}
export const NodeSystemInfoSchema: Schema<NodeSystemInfo> = nodeSystemInfo;

const containerImage = s.message('k8s.io.api.core.v1.ContainerImage', 'An image that is present on the node.', {
  names: filled(1, s.list(s.string(), { listType: 'atomic' }), 'Names of the image, with tag or digest.'),
  sizeBytes: optional(2, s.int64(), 'Size in bytes.'),
});
export interface ContainerImage extends Infer<typeof containerImage> {}
export const ContainerImageSchema: Schema<ContainerImage> = containerImage;

const attachedVolume = s.message('k8s.io.api.core.v1.AttachedVolume', 'A volume attached to the node.', {
  name: always(1, s.string(), 'Name of the volume.'),
  devicePath: always(2, s.string(), 'Device under which it appears.'),
});
export interface AttachedVolume extends Infer<typeof attachedVolume> {}
export const AttachedVolumeSchema: Schema<AttachedVolume> = attachedVolume;

const nodeConfigStatus = s.message(
  'k8s.io.api.core.v1.NodeConfigStatus',
  'Which configuration the node agent uses (no longer kept).',
  {
    assigned: optional(1, NodeConfigSourceSchema, 'Configuration that the agent is to use.'),
    active: optional(2, NodeConfigSourceSchema, 'Configuration it uses.'),
    lastKnownGood: optional(3, NodeConfigSourceSchema, 'Configuration it falls back to.'),
    error: optional(4, s.string(), 'Why the assigned configuration is not in use.'),
  },
);
export interface NodeConfigStatus extends Infer<typeof nodeConfigStatus> {}
export const NodeConfigStatusSchema: Schema<NodeConfigStatus> = nodeConfigStatus;

const nodeRuntimeHandlerFeatures = s.message(
  'k8s.io.api.core.v1.NodeRuntimeHandlerFeatures',
  'What a runtime handler can do.',
  {
    recursiveReadOnlyMounts: optional(1, s.bool(), 'Read-only mounts that include nested mounts.', { presence: true }),
    userNamespaces: optional(2, s.bool(), 'User namespaces.', { presence: true }),
  },
);
export interface NodeRuntimeHandlerFeatures extends Infer<typeof nodeRuntimeHandlerFeatures> {}
export const NodeRuntimeHandlerFeaturesSchema: Schema<NodeRuntimeHandlerFeatures> = nodeRuntimeHandlerFeatures;

const nodeRuntimeHandler = s.message('k8s.io.api.core.v1.NodeRuntimeHandler', 'A runtime handler of the node.', {
  name: filled(1, s.string(), 'Name of the handler; empty for the default one.'),
  features: optional(2, NodeRuntimeHandlerFeaturesSchema, 'What it can do.'),
});
export interface NodeRuntimeHandler extends Infer<typeof nodeRuntimeHandler> {}
export const NodeRuntimeHandlerSchema: Schema<NodeRuntimeHandler> = nodeRuntimeHandler;

const nodeFeatures = s.message(
  'k8s.io.api.core.v1.NodeFeatures',
  "What the node's container runtime can do apart from handlers.",
  {
    supplementalGroupsPolicy: optional(1, s.bool(), 'Whether supplementalGroupsPolicy of pods is supported.', {
      presence: true,
    }),
  },
);
export interface NodeFeatures extends Infer<typeof nodeFeatures> {}
export const NodeFeaturesSchema: Schema<NodeFeatures> = nodeFeatures;

const nodeStatus = s.message('k8s.io.api.core.v1.NodeStatus', 'Observed state of a node.', {
  capacity: optional(1, s.map(s.quantity()), 'Resources of the machine.'),
  allocatable: optional(2, s.map(s.quantity()), 'Resources left for pods; the capacity by default.'),
  phase: optional(
    3,
    s.string({ values: ['Pending', 'Running', 'Terminated'] }),
    'Deprecated life-cycle phase; no longer set.',
  ),
  conditions: optional(4, s.listByKey(NodeConditionSchema, 'type'), 'Latest observations.'),
  addresses: optional(5, s.listByKey(NodeAddressSchema, 'type'), 'Addresses at which the node is reached.'),
  daemonEndpoints: filled(6, NodeDaemonEndpointsSchema, 'Daemons that serve requests on the node.'),
  nodeInfo: filled(7, NodeSystemInfoSchema, 'What kind of machine it is.'),
  images: optional(8, s.list(ContainerImageSchema, { listType: 'atomic' }), 'Images on the node.'),
  volumesInUse: optional(9, s.list(s.string(), { listType: 'atomic' }), 'Volumes that pods on the node use.'),
  volumesAttached: optional(10, s.list(AttachedVolumeSchema, { listType: 'atomic' }), 'Volumes attached to the node.'),
  config: optional(11, NodeConfigStatusSchema, 'Configuration of the node agent (no longer kept).'),
  runtimeHandlers: optional(12, s.list(NodeRuntimeHandlerSchema, { listType: 'atomic' }), 'Runtime handlers.'),
  features: optional(13, NodeFeaturesSchema, 'Abilities of the container runtime.'),
  declaredFeatures: optional(
    14,
    s.list(s.string(), { listType: 'atomic' }),
    'Abilities that the node agent declares, by name.',
  ),
});
export interface NodeStatus extends Infer<typeof nodeStatus> {}
export const NodeStatusSchema: Schema<NodeStatus> = nodeStatus;
