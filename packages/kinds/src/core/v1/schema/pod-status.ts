import { always, type Infer, optional, type Schema, s } from '@keelson/core';
import { ContainerStatusSchema } from './container-status.ts';
import { ResourceRequirementsSchema } from './resources.ts';

const podCondition = s.message('k8s.io.api.core.v1.PodCondition', 'One observed condition of a pod.', {
  type: always(1, s.string(), 'Type of the condition: PodScheduled, Initialized, ContainersReady, Ready and others.'),
  observedGeneration: optional(7, s.int64(), 'The metadata.generation that the observation is about.'),
  status: always(2, s.string(), 'True, False or Unknown.'),
  lastProbeTime: optional(3, s.time(), 'Time of the last observation.'),
  lastTransitionTime: optional(4, s.time(), 'When status last changed.'),
  reason: optional(5, s.string(), 'Reason for the last transition, one CamelCase word.'),
  message: optional(6, s.string(), 'Human-readable message about the last change.'),
});
export interface PodCondition extends Infer<typeof podCondition> {}
export const PodConditionSchema: Schema<PodCondition> = podCondition;

const hostIP = s.message('k8s.io.api.core.v1.HostIP', 'An address of the node.', {
  ip: always(1, s.string(), 'IPv4 or IPv6 address.'),
});
export interface HostIP extends Infer<typeof hostIP> {}
export const HostIPSchema: Schema<HostIP> = hostIP;

const podIP = s.message('k8s.io.api.core.v1.PodIP', 'An address of the pod.', {
  ip: always(1, s.string(), 'IPv4 or IPv6 address.'),
});
export interface PodIP extends Infer<typeof podIP> {}
export const PodIPSchema: Schema<PodIP> = podIP;

const podResourceClaimStatus = s.message(
  'k8s.io.api.core.v1.PodResourceClaimStatus',
  "The claim behind an entry of the pod's resourceClaims.",
  {
    name: always(1, s.string(), 'Name of the entry.'),
    resourceClaimName: optional(2, s.string(), 'Claim that was created; unset when none was needed.', {
      presence: true,
    }),
  },
);
export interface PodResourceClaimStatus extends Infer<typeof podResourceClaimStatus> {}
export const PodResourceClaimStatusSchema: Schema<PodResourceClaimStatus> = podResourceClaimStatus;

const containerExtendedResourceRequest = s.message(
  'k8s.io.api.core.v1.ContainerExtendedResourceRequest',
  'Which request of a claim serves an extended resource of a container.',
  {
    containerName: always(1, s.string(), 'Name of the container.'),
    resourceName: always(2, s.string(), 'Name of the extended resource.'),
    requestName: always(3, s.string(), 'Name of the request in the claim.'),
  },
);
export interface ContainerExtendedResourceRequest extends Infer<typeof containerExtendedResourceRequest> {}
export const ContainerExtendedResourceRequestSchema: Schema<ContainerExtendedResourceRequest> =
  containerExtendedResourceRequest;

const podExtendedResourceClaimStatus = s.message(
  'k8s.io.api.core.v1.PodExtendedResourceClaimStatus',
  'The claim made for extended resources.',
  {
    requestMappings: always(
      1,
      s.list(ContainerExtendedResourceRequestSchema, { listType: 'atomic' }),
      'Requests by container and resource.',
    ),
    resourceClaimName: always(2, s.string(), 'Name of the claim.'),
  },
);
export interface PodExtendedResourceClaimStatus extends Infer<typeof podExtendedResourceClaimStatus> {}
export const PodExtendedResourceClaimStatusSchema: Schema<PodExtendedResourceClaimStatus> =
  podExtendedResourceClaimStatus;

const nodeAllocatableResourceClaimStatus = s.message(
  'k8s.io.api.core.v1.NodeAllocatableResourceClaimStatus',
  'Node resources that come through a claim.',
  {
    resourceClaimName: always(1, s.string(), 'Name of the claim.'),
    containers: optional(2, s.list(s.string(), { listType: 'set' }), 'Containers that use it.'),
    resources: always(3, s.map(s.quantity()), 'Amounts by resource.'),
  },
);
export interface NodeAllocatableResourceClaimStatus extends Infer<typeof nodeAllocatableResourceClaimStatus> {}
export const NodeAllocatableResourceClaimStatusSchema: Schema<NodeAllocatableResourceClaimStatus> =
  nodeAllocatableResourceClaimStatus;

const podStatus = s.message('k8s.io.api.core.v1.PodStatus', 'Observed state of a pod.', {
  observedGeneration: optional(17, s.int64(), 'The metadata.generation that the status is about.'),
  phase: optional(
    1,
    s.string({ values: ['Failed', 'Pending', 'Running', 'Succeeded', 'Unknown'] }),
    'Pending, Running, Succeeded, Failed or Unknown.',
  ),
  conditions: optional(2, s.listByKey(PodConditionSchema, 'type'), 'Latest observations.'),
  message: optional(3, s.string(), 'Human-readable message about the state.'),
  reason: optional(4, s.string(), 'One CamelCase word for why it is in this state, e.g. Evicted.'),
  nominatedNodeName: optional(11, s.string(), 'Node that is being cleared for the pod.'),
  hostIP: optional(5, s.string(), 'Address of the node.'),
  hostIPs: optional(
    16,
    s.list(HostIPSchema, { patchStrategy: 'merge', patchMergeKey: 'ip', listType: 'atomic' }),
    'Addresses of the node; the first equals hostIP.',
  ),
  podIP: optional(6, s.string(), 'Address of the pod.'),
  podIPs: optional(
    12,
    s.listByKey(PodIPSchema, 'ip'),
    'Addresses of the pod, at most one for each IP family; the first equals podIP.',
  ),
  startTime: optional(7, s.time(), 'When the node agent took the pod.'),
  initContainerStatuses: optional(
    10,
    s.list(ContainerStatusSchema, { listType: 'atomic' }),
    'State of the init containers.',
  ),
  containerStatuses: optional(8, s.list(ContainerStatusSchema, { listType: 'atomic' }), 'State of the containers.'),
  qosClass: optional(
    9,
    s.string({ values: ['BestEffort', 'Burstable', 'Guaranteed'] }),
    'Guaranteed, Burstable or BestEffort.',
  ),
  ephemeralContainerStatuses: optional(
    13,
    s.list(ContainerStatusSchema, { listType: 'atomic' }),
    'State of the ephemeral containers.',
  ),
  resize: optional(14, s.string(), 'State of a pending change of resources; replaced by conditions.'),
  resourceClaimStatuses: optional(
    15,
    s.listByKey(PodResourceClaimStatusSchema, 'name', { patchStrategy: 'merge,retainKeys' }),
    'Claims behind resourceClaims.',
  ),
  extendedResourceClaimStatus: optional(18, PodExtendedResourceClaimStatusSchema, 'Claim made for extended resources.'),
  allocatedResources: optional(19, s.map(s.quantity()), 'Resources set aside for the pod as a whole.'),
  resources: optional(20, ResourceRequirementsSchema, 'Resources in force for the pod as a whole.'),
  nodeAllocatableResourceClaimStatuses: optional(
    21,
    s.list(NodeAllocatableResourceClaimStatusSchema, { listType: 'atomic' }),
    'Node resources that come through claims.',
  ),
});
export interface PodStatus extends Infer<typeof podStatus> {}
export const PodStatusSchema: Schema<PodStatus> = podStatus;
