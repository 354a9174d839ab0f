import { always, filled, type Infer, optional, type Schema, s } from '@keelson/core';
import { AffinitySchema } from './affinity.ts';
import { ContainerSchema, EphemeralContainerSchema } from './containers.ts';
import { HostAliasSchema, PodDNSConfigSchema } from './pod-network.ts';
import { LocalObjectReferenceSchema } from './references.ts';
import { ResourceRequirementsSchema } from './resources.ts';
import {
  PodReadinessGateSchema,
  PodSchedulingGateSchema,
  PodSchedulingGroupSchema,
  TolerationSchema,
  TopologySpreadConstraintSchema,
} from './scheduling.ts';
import { PodSecurityContextSchema } from './security-context.ts';
import { VolumeSchema } from './volumes.ts';

const podOS = s.message('k8s.io.api.core.v1.PodOS', 'Operating system of a pod.', {
  name: always(1, s.string(), 'Either linux or windows.'),
});
export interface PodOS extends Infer<typeof podOS> {}
export const PodOSSchema: Schema<PodOS> = podOS;

const podResourceClaim = s.message(
  'k8s.io.api.core.v1.PodResourceClaim',
  'A resource claim that a pod uses; exactly one of the two sources is set.',
  {
    name: always(1, s.string(), 'Name within the pod, a DNS label.'),
    resourceClaimName: optional(3, s.string(), 'An existing claim in the same namespace.', { presence: true }),
    resourceClaimTemplateName: optional(4, s.string(), 'A template from which a claim is created for this pod.', {
      presence: true,
    }),
  },
);
export interface PodResourceClaim extends Infer<typeof podResourceClaim> {}
export const PodResourceClaimSchema: Schema<PodResourceClaim> = podResourceClaim;

const podSpec = s.message('k8s.io.api.core.v1.PodSpec', 'Intended state of a pod.', {
  volumes: optional(
    1,
    s.listByKey(VolumeSchema, 'name', { patchStrategy: 'merge,retainKeys' }),
    'Volumes that containers may mount.',
  ),
  initContainers: optional(
    20,
    s.listByKey(ContainerSchema, 'name'),
    'Containers that run one after the other, each to its end, before the others start.',
  ),
  containers: always(
    2,
    s.listByKey(ContainerSchema, 'name'),
    'Containers of the pod, at least one. None can be added or removed later.',
  ),
  ephemeralContainers: optional(
    34,
    s.listByKey(EphemeralContainerSchema, 'name'),
    'Containers for debugging the running pod; only set through the ephemeralcontainers subresource.',
  ),
  restartPolicy: optional(
    3,
    s.string({ values: ['Always', 'Never', 'OnFailure'] }),
    'When ended containers are started again: Always, OnFailure or Never.',
    {
      default: 'Always',
    },
  ),
  terminationGracePeriodSeconds: optional(
    4,
    s.int64(),
    'Seconds between the request to end and the kill; 0 kills at once.',
    {
      presence: true,
      default: 30,
    },
  ),
  activeDeadlineSeconds: optional(5, s.int64(), 'Seconds after which the pod is ended as failed.', { presence: true }),
  dnsPolicy: optional(
    6,
    s.string({ values: ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'] }),
    'ClusterFirst, ClusterFirstWithHostNet, Default or None.',
    {
      default: 'ClusterFirst',
    },
  ),
  nodeSelector: optional(7, s.map(s.string(), { mapType: 'atomic' }), 'Labels that the node must have.'),
  serviceAccountName: optional(8, s.string(), 'Service account whose identity the pod has.'),
  serviceAccount: optional(9, s.string(), 'Old name of serviceAccountName; kept equal.'),
  automountServiceAccountToken: optional(21, s.bool(), "Whether the account's token is mounted.", { presence: true }),
  nodeName: optional(10, s.string(), 'Node on which the pod runs, usually set by the scheduler.'),
  hostNetwork: optional(11, s.bool(), 'True uses the network of the node.'),
  hostPID: optional(12, s.bool(), 'True uses the process namespace of the node.'),
  hostIPC: optional(13, s.bool(), 'True uses the IPC namespace of the node.'),
  shareProcessNamespace: optional(27, s.bool(), "True lets the containers see each other's processes.", {
    presence: true,
  }),
  securityContext: filled(14, PodSecurityContextSchema, 'Security settings for all containers.'),
  imagePullSecrets: optional(15, s.listByKey(LocalObjectReferenceSchema, 'name'), 'Secrets for pulling images.'),
  hostname: optional(16, s.string(), 'Host name of the pod; its name by default.'),
  subdomain: optional(17, s.string(), 'Makes the full host name hostname.subdomain.namespace.svc.<cluster domain>.'),
  affinity: optional(18, AffinitySchema, 'Rules about where the pod may run.'),
  schedulerName: optional(19, s.string(), 'Scheduler that assigns the pod to a node.', {
    default: 'default-scheduler',
  }),
  tolerations: optional(22, s.list(TolerationSchema, { listType: 'atomic' }), 'Taints that the pod bears.'),
  hostAliases: optional(23, s.listByKey(HostAliasSchema, 'ip'), 'Lines for the hosts file.'),
  priorityClassName: optional(24, s.string(), 'Class that determines the priority.'),
  priority: optional(25, s.int32(), 'Priority; higher values are scheduled first. Derived from the class.', {
    presence: true,
  }),
  dnsConfig: optional(26, PodDNSConfigSchema, 'Resolver settings.'),
  readinessGates: optional(
    28,
    s.list(PodReadinessGateSchema, { listType: 'atomic' }),
    'Further conditions for readiness.',
  ),
  runtimeClassName: optional(29, s.string(), 'Class of the container runtime.', { presence: true }),
  enableServiceLinks: optional(30, s.bool(), 'False leaves out the environment variables about services.', {
    presence: true,
  }),
  preemptionPolicy: optional(
    31,
    s.string({ values: ['Never', 'PreemptLowerPriority'] }),
    'PreemptLowerPriority or Never.',
    { presence: true },
  ),
  overhead: optional(32, s.map(s.quantity()), 'Resources for running the pod itself; derived from the runtime class.'),
  topologySpreadConstraints: optional(
    33,
    s.listByKey(TopologySpreadConstraintSchema, 'topologyKey', { listMapKeys: ['topologyKey', 'whenUnsatisfiable'] }),
    'How pods are spread over topology domains; all must hold.',
  ),
  setHostnameAsFQDN: optional(35, s.bool(), 'True makes the full name the host name.', { presence: true }),
  os: optional(36, PodOSSchema, 'Operating system the pod is for.'),
  hostUsers: optional(37, s.bool(), 'False runs the pod in a user namespace of its own.', { presence: true }),
  schedulingGates: optional(
    38,
    s.listByKey(PodSchedulingGateSchema, 'name'),
    'Reasons why it is not to be scheduled yet; only at creation, later only removed.',
  ),
  resourceClaims: optional(
    39,
    s.listByKey(PodResourceClaimSchema, 'name', { patchStrategy: 'merge,retainKeys' }),
    'Resource claims the pod uses.',
  ),
  resources: optional(40, ResourceRequirementsSchema, 'Resources of the pod as a whole.'),
  hostnameOverride: optional(41, s.string(), 'Host name as seen inside the pod, without effect on DNS.', {
    presence: true,
  }),
  schedulingGroup: optional(43, PodSchedulingGroupSchema, 'Group with which it is scheduled.'),
});
export interface PodSpec extends Infer<typeof podSpec> {}
export const PodSpecSchema: Schema<PodSpec> = podSpec;
