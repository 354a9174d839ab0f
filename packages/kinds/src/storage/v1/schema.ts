import {
  always,
  filled,
  type Infer,
  type KubeObject,
  labelSelectorSchema,
  optional,
  type Schema,
  s,
} from '@keelson/core';
import { TopologySelectorTermSchema } from '../../core/v1/schema/node-selector.ts';
import { PersistentVolumeSpecSchema } from '../../core/v1/schema/persistent-volume.ts';

const storageClass = s.message(
  'k8s.io.api.storage.v1.StorageClass',
  'Describes how volumes are provisioned for claims.',
  {
    provisioner: always(2, s.string(), 'Name of the driver that provisions volumes.'),
    parameters: optional(3, s.map(s.string()), 'Parameters for the driver, at most 512.'),
    reclaimPolicy: optional(
      4,
      s.string({ values: ['Delete', 'Recycle', 'Retain'] }),
      'Reclaim policy of the volumes; Delete by default.',
      { presence: true },
    ),
    mountOptions: optional(5, s.list(s.string(), { listType: 'atomic' }), 'Options of their mounts.'),
    allowVolumeExpansion: optional(6, s.bool(), 'True permits larger claims.', { presence: true }),
    volumeBindingMode: optional(
      7,
      s.string({ values: ['Immediate', 'WaitForFirstConsumer'] }),
      'When volumes are provisioned: Immediate or WaitForFirstConsumer.',
      {
        presence: true,
      },
    ),
    allowedTopologies: optional(
      8,
      s.list(TopologySelectorTermSchema, { listType: 'atomic' }),
      'Topologies in which volumes may be provisioned.',
    ),
  },
);
export interface StorageClass extends KubeObject, Infer<typeof storageClass> {}
export const StorageClassSchema: Schema<StorageClass> = storageClass;

const volumeAttachmentSource = s.message('k8s.io.api.storage.v1.VolumeAttachmentSource', 'The attached volume.', {
  persistentVolumeName: optional(1, s.string(), 'Name of the volume.', { presence: true }),
  inlineVolumeSpec: optional(2, PersistentVolumeSpecSchema, 'The volume itself, for volumes of migrated drivers.'),
});
export interface VolumeAttachmentSource extends Infer<typeof volumeAttachmentSource> {}
export const VolumeAttachmentSourceSchema: Schema<VolumeAttachmentSource> = volumeAttachmentSource;

const volumeAttachmentSpec = s.message('k8s.io.api.storage.v1.VolumeAttachmentSpec', 'An intended attachment.', {
  attacher: always(1, s.string(), 'Name of the driver that attaches.'),
  source: always(2, VolumeAttachmentSourceSchema, 'The volume.'),
  nodeName: always(3, s.string(), 'The node.'),
});
export interface VolumeAttachmentSpec extends Infer<typeof volumeAttachmentSpec> {}
export const VolumeAttachmentSpecSchema: Schema<VolumeAttachmentSpec> = volumeAttachmentSpec;

const volumeError = s.message('k8s.io.api.storage.v1.VolumeError', 'A failure of a driver.', {
  time: optional(1, s.time(), 'When it happened.'),
  message: optional(2, s.string(), 'Details for people.'),
  errorCode: optional(3, s.int32(), 'Code of the driver.', { presence: true }),
});
export interface VolumeError extends Infer<typeof volumeError> {}
export const VolumeErrorSchema: Schema<VolumeError> = volumeError;

const volumeAttachmentStatus = s.message(
  'k8s.io.api.storage.v1.VolumeAttachmentStatus',
  'Observed state of an attachment.',
  {
    attached: always(1, s.bool(), 'True when the volume is attached.'),
    attachmentMetadata: optional(2, s.map(s.string()), 'Values of the driver for later steps.'),
    attachError: optional(3, VolumeErrorSchema, 'Last failure to attach.'),
    detachError: optional(4, VolumeErrorSchema, 'Last failure to detach.'),
  },
);
export interface VolumeAttachmentStatus extends Infer<typeof volumeAttachmentStatus> {}
export const VolumeAttachmentStatusSchema: Schema<VolumeAttachmentStatus> = volumeAttachmentStatus;

const volumeAttachment = s.message(
  'k8s.io.api.storage.v1.VolumeAttachment',
  'The intent to attach a volume to a node.',
  {
    spec: always(2, VolumeAttachmentSpecSchema, 'The intended attachment; it cannot be changed.'),
    status: filled(3, VolumeAttachmentStatusSchema, 'Observed state.'),
  },
);
export interface VolumeAttachment extends KubeObject, Infer<typeof volumeAttachment> {}
export const VolumeAttachmentSchema: Schema<VolumeAttachment> = volumeAttachment;

const tokenRequest = s.message('k8s.io.api.storage.v1.TokenRequest', 'A token that a driver receives.', {
  audience: always(1, s.string(), 'Audience of the token; empty means that of the server.'),
  expirationSeconds: optional(2, s.int64(), 'Lifetime of the token.', { presence: true }),
});
export interface TokenRequest extends Infer<typeof tokenRequest> {}
export const TokenRequestSchema: Schema<TokenRequest> = tokenRequest;

const csiDriverSpec = s.message('k8s.io.api.storage.v1.CSIDriverSpec', 'Properties of a driver.', {
  attachRequired: optional(1, s.bool(), 'Volumes must be attached before they are mounted; true by default.', {
    presence: true,
  }),
  podInfoOnMount: optional(2, s.bool(), 'The driver receives names of the pod; false by default.', { presence: true }),
  volumeLifecycleModes: optional(
    3,
    s.list(s.string(), { listType: 'set' }),
    'Persistent, Ephemeral or both; Persistent by default.',
  ),
  storageCapacity: optional(4, s.bool(), 'The driver publishes its capacity; false by default.', { presence: true }),
  fsGroupPolicy: optional(
    5,
    s.string(),
    'Whether owners of files are changed: ReadWriteOnceWithFSType, File or None.',
    { presence: true },
  ),
  tokenRequests: optional(6, s.list(TokenRequestSchema, { listType: 'atomic' }), 'Tokens that the driver receives.'),
  requiresRepublish: optional(7, s.bool(), 'Volumes are published again at intervals; false by default.', {
    presence: true,
  }),
  seLinuxMount: optional(8, s.bool(), 'The driver supports mounts with an SELinux label; false by default.', {
    presence: true,
  }),
  nodeAllocatableUpdatePeriodSeconds: optional(9, s.int64(), 'Interval at which the capacity of nodes is updated.', {
    presence: true,
  }),
});
export interface CSIDriverSpec extends Infer<typeof csiDriverSpec> {}
export const CSIDriverSpecSchema: Schema<CSIDriverSpec> = csiDriverSpec;

const csiDriver = s.message('k8s.io.api.storage.v1.CSIDriver', 'Describes a CSI driver of the cluster.', {
  spec: always(2, CSIDriverSpecSchema, 'Properties of the driver.'),
});
export interface CSIDriver extends KubeObject, Infer<typeof csiDriver> {}
export const CSIDriverSchema: Schema<CSIDriver> = csiDriver;

const volumeNodeResources = s.message('k8s.io.api.storage.v1.VolumeNodeResources', 'Capacity of a driver on a node.', {
  count: optional(1, s.int32(), 'Highest number of volumes; unset means no limit.', { presence: true }),
});
export interface VolumeNodeResources extends Infer<typeof volumeNodeResources> {}
export const VolumeNodeResourcesSchema: Schema<VolumeNodeResources> = volumeNodeResources;

const csiNodeDriver = s.message('k8s.io.api.storage.v1.CSINodeDriver', 'A driver on a node.', {
  name: always(1, s.string(), 'Name of the driver.'),
  nodeID: always(2, s.string(), 'Identity of the node at the driver.'),
  topologyKeys: filled(3, s.list(s.string(), { listType: 'atomic' }), 'Labels of the node that describe its topology.'),
  allocatable: optional(4, VolumeNodeResourcesSchema, 'Capacity on the node.'),
});
export interface CSINodeDriver extends Infer<typeof csiNodeDriver> {}
export const CSINodeDriverSchema: Schema<CSINodeDriver> = csiNodeDriver;

const csiNodeSpec = s.message('k8s.io.api.storage.v1.CSINodeSpec', 'Drivers of a node.', {
  drivers: always(1, s.listByKey(CSINodeDriverSchema, 'name'), 'The drivers.'),
});
export interface CSINodeSpec extends Infer<typeof csiNodeSpec> {}
export const CSINodeSpecSchema: Schema<CSINodeSpec> = csiNodeSpec;

const csiNode = s.message('k8s.io.api.storage.v1.CSINode', 'The CSI drivers of a node with the same name.', {
  spec: always(2, CSINodeSpecSchema, 'The drivers.'),
});
export interface CSINode extends KubeObject, Infer<typeof csiNode> {}
export const CSINodeSchema: Schema<CSINode> = csiNode;

const csiStorageCapacity = s.message(
  'k8s.io.api.storage.v1.CSIStorageCapacity',
  'Free storage of a class in a part of the cluster.',
  {
    nodeTopology: optional(2, labelSelectorSchema, 'Labels of the nodes that can reach the storage.'),
    storageClassName: always(3, s.string(), 'Name of the class; it cannot be changed.'),
    capacity: optional(4, s.quantity(), 'Free storage.'),
    maximumVolumeSize: optional(5, s.quantity(), 'Largest volume that can be made.'),
  },
);
export interface CSIStorageCapacity extends KubeObject, Infer<typeof csiStorageCapacity> {}
export const CSIStorageCapacitySchema: Schema<CSIStorageCapacity> = csiStorageCapacity;
