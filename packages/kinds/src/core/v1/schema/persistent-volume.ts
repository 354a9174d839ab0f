// One file: the messages of persistent volumes, one for each volume plugin.
import {
  always,
  embedded,
  filled,
  type Infer,
  inline,
  type KubeObject,
  optional,
  required,
  type Schema,
  s,
} from '@keelson/core';
import { NodeSelectorSchema } from './node-selector.ts';
import { ObjectReferenceSchema } from './references.ts';
import {
  AWSElasticBlockStoreVolumeSourceSchema,
  AzureDiskVolumeSourceSchema,
  GCEPersistentDiskVolumeSourceSchema,
  PhotonPersistentDiskVolumeSourceSchema,
  PortworxVolumeSourceSchema,
  VsphereVirtualDiskVolumeSourceSchema,
} from './volume-cloud.ts';
import { HostPathVolumeSourceSchema } from './volume-local.ts';
import {
  FCVolumeSourceSchema,
  FlockerVolumeSourceSchema,
  NFSVolumeSourceSchema,
  QuobyteVolumeSourceSchema,
} from './volume-network.ts';

const secretReference = s.message(
  'k8s.io.api.core.v1.SecretReference',
  'Names a secret in any namespace.',
  {
    name: optional(1, s.string(), 'Name of the secret.'),
    namespace: optional(2, s.string(), 'Namespace of the secret.'),
  },
  { mapType: 'atomic' },
);
export interface SecretReference extends Infer<typeof secretReference> {}
export const SecretReferenceSchema: Schema<SecretReference> = secretReference;

const glusterfsPersistentVolumeSource = s.message(
  'k8s.io.api.core.v1.GlusterfsPersistentVolumeSource',
  'A volume of Glusterfs.',
  {
    endpoints: always(1, s.string(), 'Name of the Endpoints with the servers.'),
    path: always(2, s.string(), 'Name of the volume.'),
    readOnly: optional(3, s.bool(), 'True mounts it read-only.'),
    endpointsNamespace: optional(4, s.string(), 'Namespace of the Endpoints; that of the claim by default.', {
      presence: true,
    }),
  },
);
export interface GlusterfsPersistentVolumeSource extends Infer<typeof glusterfsPersistentVolumeSource> {}
export const GlusterfsPersistentVolumeSourceSchema: Schema<GlusterfsPersistentVolumeSource> =
  glusterfsPersistentVolumeSource;

const rbdPersistentVolumeSource = s.message('k8s.io.api.core.v1.RBDPersistentVolumeSource', 'An image of Ceph.', {
  monitors: always(1, s.list(s.string(), { listType: 'atomic' }), 'The monitors of Ceph.'),
  image: always(2, s.string(), 'Name of the image.'),
  fsType: optional(3, s.string(), 'File system of the image; ext4 by default.'),
  pool: optional(4, s.string(), 'Pool of the image.', { default: 'rbd' }),
  user: optional(5, s.string(), 'User of Ceph.', { default: 'admin' }),
  keyring: optional(6, s.string(), 'File with the key of the user.', { default: '/etc/ceph/keyring' }),
  secretRef: optional(7, SecretReferenceSchema, 'Secret with the key, instead of the file.'),
  readOnly: optional(8, s.bool(), 'True mounts it read-only.'),
});
export interface RBDPersistentVolumeSource extends Infer<typeof rbdPersistentVolumeSource> {}
export const RBDPersistentVolumeSourceSchema: Schema<RBDPersistentVolumeSource> = rbdPersistentVolumeSource;

const iscsiPersistentVolumeSource = s.message('k8s.io.api.core.v1.ISCSIPersistentVolumeSource', 'A disk over iSCSI.', {
  targetPortal: always(1, s.string(), 'Address of the target.'),
  iqn: always(2, s.string(), 'Qualified name of the target.'),
  lun: always(3, s.int32(), 'Number of the unit.'),
  iscsiInterface: optional(4, s.string(), 'Name of the interface of the initiator.', { default: 'default' }),
  fsType: optional(5, s.string(), 'File system of the disk.'),
  readOnly: optional(6, s.bool(), 'True mounts it read-only.'),
  portals: optional(7, s.list(s.string(), { listType: 'atomic' }), 'Further addresses of the target.'),
  chapAuthDiscovery: optional(8, s.bool(), 'True authenticates the discovery.'),
  chapAuthSession: optional(11, s.bool(), 'True authenticates the session.'),
  secretRef: optional(10, SecretReferenceSchema, 'Secret with the credentials.'),
  initiatorName: optional(12, s.string(), 'Name of the initiator.', { presence: true }),
});
export interface ISCSIPersistentVolumeSource extends Infer<typeof iscsiPersistentVolumeSource> {}
export const ISCSIPersistentVolumeSourceSchema: Schema<ISCSIPersistentVolumeSource> = iscsiPersistentVolumeSource;

const cinderPersistentVolumeSource = s.message(
  'k8s.io.api.core.v1.CinderPersistentVolumeSource',
  'A volume of Cinder.',
  {
    volumeID: always(1, s.string(), 'Identity of the volume.'),
    fsType: optional(2, s.string(), 'File system of the volume; ext4 by default.'),
    readOnly: optional(3, s.bool(), 'True mounts it read-only.'),
    secretRef: optional(4, SecretReferenceSchema, 'Secret with the parameters of the connection.'),
  },
);
export interface CinderPersistentVolumeSource extends Infer<typeof cinderPersistentVolumeSource> {}
export const CinderPersistentVolumeSourceSchema: Schema<CinderPersistentVolumeSource> = cinderPersistentVolumeSource;

const cephFSPersistentVolumeSource = s.message(
  'k8s.io.api.core.v1.CephFSPersistentVolumeSource',
  'A file system of Ceph.',
  {
    monitors: always(1, s.list(s.string(), { listType: 'atomic' }), 'The monitors of Ceph.'),
    path: optional(2, s.string(), 'Mounted folder; the root by default.'),
    user: optional(3, s.string(), 'User of Ceph; admin by default.'),
    secretFile: optional(4, s.string(), 'File with the key of the user.'),
    secretRef: optional(5, SecretReferenceSchema, 'Secret with the key, instead of the file.'),
    readOnly: optional(6, s.bool(), 'True mounts it read-only.'),
  },
);
export interface CephFSPersistentVolumeSource extends Infer<typeof cephFSPersistentVolumeSource> {}
export const CephFSPersistentVolumeSourceSchema: Schema<CephFSPersistentVolumeSource> = cephFSPersistentVolumeSource;

const flexPersistentVolumeSource = s.message(
  'k8s.io.api.core.v1.FlexPersistentVolumeSource',
  'A volume of a FlexVolume driver.',
  {
    driver: always(1, s.string(), 'Name of the driver.'),
    fsType: optional(2, s.string(), 'File system of the volume.'),
    secretRef: optional(3, SecretReferenceSchema, 'Secret for the driver.'),
    readOnly: optional(4, s.bool(), 'True mounts it read-only.'),
    options: optional(5, s.map(s.string()), 'Options for the driver.'),
  },
);
export interface FlexPersistentVolumeSource extends Infer<typeof flexPersistentVolumeSource> {}
export const FlexPersistentVolumeSourceSchema: Schema<FlexPersistentVolumeSource> = flexPersistentVolumeSource;

const azureFilePersistentVolumeSource = s.message(
  'k8s.io.api.core.v1.AzureFilePersistentVolumeSource',
  'A share of Azure.',
  {
    secretName: always(1, s.string(), 'Name of the secret with account and key.'),
    shareName: always(2, s.string(), 'Name of the share.'),
    readOnly: optional(3, s.bool(), 'True mounts it read-only.'),
    secretNamespace: optional(4, s.string(), 'Namespace of the secret; that of the pod by default.', {
      presence: true,
    }),
  },
);
export interface AzureFilePersistentVolumeSource extends Infer<typeof azureFilePersistentVolumeSource> {}
export const AzureFilePersistentVolumeSourceSchema: Schema<AzureFilePersistentVolumeSource> =
  azureFilePersistentVolumeSource;

const scaleIOPersistentVolumeSource = s.message(
  'k8s.io.api.core.v1.ScaleIOPersistentVolumeSource',
  'A volume of ScaleIO.',
  {
    gateway: always(1, s.string(), 'Address of the gateway.'),
    system: always(2, s.string(), 'Name of the storage system.'),
    secretRef: required(3, SecretReferenceSchema, 'Secret with the credentials.'),
    sslEnabled: optional(4, s.bool(), 'True encrypts the connection.'),
    protectionDomain: optional(5, s.string(), 'Name of the protection domain.'),
    storagePool: optional(6, s.string(), 'Pool of the volume.'),
    storageMode: optional(7, s.string(), 'ThickProvisioned or ThinProvisioned.', { default: 'ThinProvisioned' }),
    volumeName: optional(8, s.string(), 'Name of the volume.'),
    fsType: optional(9, s.string(), 'File system of the volume.', { default: 'xfs' }),
    readOnly: optional(10, s.bool(), 'True mounts it read-only.'),
  },
);
export interface ScaleIOPersistentVolumeSource extends Infer<typeof scaleIOPersistentVolumeSource> {}
export const ScaleIOPersistentVolumeSourceSchema: Schema<ScaleIOPersistentVolumeSource> = scaleIOPersistentVolumeSource;

const localVolumeSource = s.message('k8s.io.api.core.v1.LocalVolumeSource', 'A disk or folder of one node.', {
  path: always(1, s.string(), 'Path on the node.'),
  fsType: optional(2, s.string(), 'File system, for a disk.', { presence: true }),
});
export interface LocalVolumeSource extends Infer<typeof localVolumeSource> {}
export const LocalVolumeSourceSchema: Schema<LocalVolumeSource> = localVolumeSource;

const storageOSPersistentVolumeSource = s.message(
  'k8s.io.api.core.v1.StorageOSPersistentVolumeSource',
  'A volume of StorageOS.',
  {
    volumeName: optional(1, s.string(), 'Name of the volume.'),
    volumeNamespace: optional(2, s.string(), 'Namespace within StorageOS.'),
    fsType: optional(3, s.string(), 'File system of the volume.'),
    readOnly: optional(4, s.bool(), 'True mounts it read-only.'),
    secretRef: optional(5, ObjectReferenceSchema, 'Secret with the credentials.'),
  },
);
export interface StorageOSPersistentVolumeSource extends Infer<typeof storageOSPersistentVolumeSource> {}
export const StorageOSPersistentVolumeSourceSchema: Schema<StorageOSPersistentVolumeSource> =
  storageOSPersistentVolumeSource;

const csiPersistentVolumeSource = s.message(
  'k8s.io.api.core.v1.CSIPersistentVolumeSource',
  'A volume of a CSI driver.',
  {
    driver: always(1, s.string(), 'Name of the driver.'),
    volumeHandle: always(2, s.string(), 'Identity of the volume at the driver.'),
    readOnly: optional(3, s.bool(), 'True publishes it read-only.'),
    fsType: optional(4, s.string(), 'File system of the volume.'),
    volumeAttributes: optional(5, s.map(s.string()), 'Attributes of the volume for the driver.'),
    controllerPublishSecretRef: optional(6, SecretReferenceSchema, 'Secret for attaching and detaching.'),
    nodeStageSecretRef: optional(7, SecretReferenceSchema, 'Secret for staging on a node.'),
    nodePublishSecretRef: optional(8, SecretReferenceSchema, 'Secret for publishing on a node.'),
    controllerExpandSecretRef: optional(9, SecretReferenceSchema, 'Secret for enlarging by the controller.'),
    nodeExpandSecretRef: optional(10, SecretReferenceSchema, 'Secret for enlarging on a node.'),
  },
);
export interface CSIPersistentVolumeSource extends Infer<typeof csiPersistentVolumeSource> {}
export const CSIPersistentVolumeSourceSchema: Schema<CSIPersistentVolumeSource> = csiPersistentVolumeSource;

const persistentVolumeSource = s.message(
  'k8s.io.api.core.v1.PersistentVolumeSource',
  'Where the data of a volume is; exactly one field is set.',
  {
    gcePersistentDisk: optional(1, GCEPersistentDiskVolumeSourceSchema, 'A disk of GCE.'),
    awsElasticBlockStore: optional(2, AWSElasticBlockStoreVolumeSourceSchema, 'A disk of AWS.'),
    hostPath: optional(3, HostPathVolumeSourceSchema, 'A folder of the node.'),
    glusterfs: optional(4, GlusterfsPersistentVolumeSourceSchema, 'A volume of Glusterfs.'),
    nfs: optional(5, NFSVolumeSourceSchema, 'A folder of an NFS server.'),
    rbd: optional(6, RBDPersistentVolumeSourceSchema, 'An image of Ceph.'),
    iscsi: optional(7, ISCSIPersistentVolumeSourceSchema, 'A disk over iSCSI.'),
    cinder: optional(8, CinderPersistentVolumeSourceSchema, 'A volume of Cinder.'),
    cephfs: optional(9, CephFSPersistentVolumeSourceSchema, 'A file system of Ceph.'),
    fc: optional(10, FCVolumeSourceSchema, 'A disk over Fibre Channel.'),
    flocker: optional(11, FlockerVolumeSourceSchema, 'A volume of Flocker.'),
    flexVolume: optional(12, FlexPersistentVolumeSourceSchema, 'A volume of a FlexVolume driver.'),
    azureFile: optional(13, AzureFilePersistentVolumeSourceSchema, 'A share of Azure.'),
    vsphereVolume: optional(14, VsphereVirtualDiskVolumeSourceSchema, 'A disk of vSphere.'),
    quobyte: optional(15, QuobyteVolumeSourceSchema, 'A volume of Quobyte.'),
    azureDisk: optional(16, AzureDiskVolumeSourceSchema, 'A disk of Azure.'),
    photonPersistentDisk: optional(17, PhotonPersistentDiskVolumeSourceSchema, 'A disk of Photon.'),
    portworxVolume: optional(18, PortworxVolumeSourceSchema, 'A volume of Portworx.'),
    scaleIO: optional(19, ScaleIOPersistentVolumeSourceSchema, 'A volume of ScaleIO.'),
    local: optional(20, LocalVolumeSourceSchema, 'A disk or folder of one node.'),
    storageos: optional(21, StorageOSPersistentVolumeSourceSchema, 'A volume of StorageOS.'),
    csi: optional(22, CSIPersistentVolumeSourceSchema, 'A volume of a CSI driver.'),
  },
);
export interface PersistentVolumeSource extends Infer<typeof persistentVolumeSource> {}
export const PersistentVolumeSourceSchema: Schema<PersistentVolumeSource> = persistentVolumeSource;

const volumeNodeAffinity = s.message('k8s.io.api.core.v1.VolumeNodeAffinity', 'Nodes that can reach a volume.', {
  required: optional(1, NodeSelectorSchema, 'Conditions that such nodes fulfil.'),
});
export interface VolumeNodeAffinity extends Infer<typeof volumeNodeAffinity> {}
export const VolumeNodeAffinitySchema: Schema<VolumeNodeAffinity> = volumeNodeAffinity;

const persistentVolumeSpec = s.message('k8s.io.api.core.v1.PersistentVolumeSpec', 'Properties of a volume.', {
  capacity: optional(1, s.map(s.quantity()), 'Size of the volume, under the name storage.'),
  persistentVolumeSource: inline(2, PersistentVolumeSourceSchema),
  accessModes: optional(
    3,
    s.list(s.string({ values: ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'] }), {
      listType: 'atomic',
    }),
    'How it can be mounted.',
  ),
  claimRef: optional(4, ObjectReferenceSchema, 'The claim that is bound to it.'),
  persistentVolumeReclaimPolicy: optional(
    5,
    s.string({ values: ['Delete', 'Recycle', 'Retain'] }),
    'What happens to it after the claim: Retain, Delete or Recycle.',
    { default: 'Retain' },
  ),
  storageClassName: optional(6, s.string(), 'Class of the volume; empty means none.'),
  mountOptions: optional(7, s.list(s.string(), { listType: 'atomic' }), 'Options of the mount.'),
  volumeMode: optional(8, s.string({ values: ['Block', 'Filesystem'] }), 'Filesystem, or Block for a raw device.', {
    presence: true,
    default: 'Filesystem',
  }),
  nodeAffinity: optional(9, VolumeNodeAffinitySchema, 'Nodes that can reach it.'),
  volumeAttributesClassName: optional(10, s.string(), 'Class of attributes that can be changed later.', {
    presence: true,
  }),
});
export interface PersistentVolumeSpec extends Infer<typeof persistentVolumeSpec> {}
export const PersistentVolumeSpecSchema: Schema<PersistentVolumeSpec> = persistentVolumeSpec;

const persistentVolumeStatus = s.message('k8s.io.api.core.v1.PersistentVolumeStatus', 'Observed state of a volume.', {
  phase: optional(
    1,
    s.string({ values: ['Available', 'Bound', 'Failed', 'Pending', 'Released'] }),
    'Pending, Available, Bound, Released or Failed.',
  ),
  message: optional(2, s.string(), 'Details for people.'),
  reason: optional(3, s.string(), 'Reason of a failure in one word.'),
  lastPhaseTransitionTime: optional(4, s.time(), 'When the phase last changed.'),
});
export interface PersistentVolumeStatus extends Infer<typeof persistentVolumeStatus> {}
export const PersistentVolumeStatusSchema: Schema<PersistentVolumeStatus> = persistentVolumeStatus;

const persistentVolume = s.message('k8s.io.api.core.v1.PersistentVolume', 'A piece of storage of the cluster.', {
  spec: embedded(2, PersistentVolumeSpecSchema, 'Properties of the volume.'),
  status: filled(3, PersistentVolumeStatusSchema, 'Observed state.'),
});
export interface PersistentVolume extends KubeObject, Infer<typeof persistentVolume> {}
export const PersistentVolumeSchema: Schema<PersistentVolume> = persistentVolume;
