import { always, type Infer, inline, optional, type Schema, s } from '@keelson/core';
import { EphemeralVolumeSourceSchema, PersistentVolumeClaimVolumeSourceSchema } from './volume-claim.ts';
import {
  AWSElasticBlockStoreVolumeSourceSchema,
  AzureDiskVolumeSourceSchema,
  AzureFileVolumeSourceSchema,
  CinderVolumeSourceSchema,
  CSIVolumeSourceSchema,
  FlexVolumeSourceSchema,
  GCEPersistentDiskVolumeSourceSchema,
  PhotonPersistentDiskVolumeSourceSchema,
  PortworxVolumeSourceSchema,
  VsphereVirtualDiskVolumeSourceSchema,
} from './volume-cloud.ts';
import {
  EmptyDirVolumeSourceSchema,
  GitRepoVolumeSourceSchema,
  HostPathVolumeSourceSchema,
  ImageVolumeSourceSchema,
} from './volume-local.ts';
import {
  CephFSVolumeSourceSchema,
  FCVolumeSourceSchema,
  FlockerVolumeSourceSchema,
  GlusterfsVolumeSourceSchema,
  ISCSIVolumeSourceSchema,
  NFSVolumeSourceSchema,
  QuobyteVolumeSourceSchema,
  RBDVolumeSourceSchema,
  ScaleIOVolumeSourceSchema,
  StorageOSVolumeSourceSchema,
} from './volume-network.ts';
import {
  ConfigMapVolumeSourceSchema,
  DownwardAPIVolumeSourceSchema,
  ProjectedVolumeSourceSchema,
  SecretVolumeSourceSchema,
} from './volume-projection.ts';

const volumeSource = s.message(
  'k8s.io.api.core.v1.VolumeSource',
  'Where a volume comes from; exactly one field is set, none means emptyDir.',
  {
    hostPath: optional(1, HostPathVolumeSourceSchema, 'File or directory of the node.'),
    emptyDir: optional(2, EmptyDirVolumeSourceSchema, 'Empty directory that lives as long as the pod.'),
    gcePersistentDisk: optional(3, GCEPersistentDiskVolumeSourceSchema, 'Disk of Google Compute Engine.'),
    awsElasticBlockStore: optional(4, AWSElasticBlockStoreVolumeSourceSchema, 'Disk of Amazon Elastic Block Store.'),
    gitRepo: optional(5, GitRepoVolumeSourceSchema, 'Clone of a git repository (deprecated).'),
    secret: optional(6, SecretVolumeSourceSchema, 'A Secret as files.'),
    nfs: optional(7, NFSVolumeSourceSchema, 'Directory of an NFS server.'),
    iscsi: optional(8, ISCSIVolumeSourceSchema, 'Disk reached over iSCSI.'),
    glusterfs: optional(9, GlusterfsVolumeSourceSchema, 'Glusterfs volume.'),
    persistentVolumeClaim: optional(10, PersistentVolumeClaimVolumeSourceSchema, 'Claim in the same namespace.'),
    rbd: optional(11, RBDVolumeSourceSchema, 'Ceph block device.'),
    flexVolume: optional(12, FlexVolumeSourceSchema, 'Volume from an exec-style driver (deprecated).'),
    cinder: optional(13, CinderVolumeSourceSchema, 'Volume of OpenStack Cinder.'),
    cephfs: optional(14, CephFSVolumeSourceSchema, 'Ceph file system.'),
    flocker: optional(15, FlockerVolumeSourceSchema, 'Flocker dataset.'),
    downwardAPI: optional(16, DownwardAPIVolumeSourceSchema, 'Facts about the pod as files.'),
    fc: optional(17, FCVolumeSourceSchema, 'Disk reached over Fibre Channel.'),
    azureFile: optional(18, AzureFileVolumeSourceSchema, 'File share of Azure.'),
    configMap: optional(19, ConfigMapVolumeSourceSchema, 'A ConfigMap as files.'),
    vsphereVolume: optional(20, VsphereVirtualDiskVolumeSourceSchema, 'Virtual disk of vSphere.'),
    quobyte: optional(21, QuobyteVolumeSourceSchema, 'Quobyte volume.'),
    azureDisk: optional(22, AzureDiskVolumeSourceSchema, 'Data disk of Azure.'),
    photonPersistentDisk: optional(23, PhotonPersistentDiskVolumeSourceSchema, 'Disk of Photon Controller.'),
    projected: optional(26, ProjectedVolumeSourceSchema, 'Several sources in one directory.'),
    portworxVolume: optional(24, PortworxVolumeSourceSchema, 'Portworx volume.'),
    scaleIO: optional(25, ScaleIOVolumeSourceSchema, 'ScaleIO volume.'),
    storageos: optional(27, StorageOSVolumeSourceSchema, 'StorageOS volume.'),
    csi: optional(28, CSIVolumeSourceSchema, 'Volume that a CSI driver provides for this pod.'),
    ephemeral: optional(29, EphemeralVolumeSourceSchema, 'Claim that is created and deleted with the pod.'),
    image: optional(30, ImageVolumeSourceSchema, 'Content of a container image.'),
  },
);
export interface VolumeSource extends Infer<typeof volumeSource> {}
export const VolumeSourceSchema: Schema<VolumeSource> = volumeSource;

const volume = s.message('k8s.io.api.core.v1.Volume', 'Storage that the containers of a pod may mount.', {
  name: always(1, s.string(), 'Name of the volume, unique in the pod.'),
  volumeSource: inline(2, VolumeSourceSchema),
});
export interface Volume extends Infer<typeof volume> {}
export const VolumeSchema: Schema<Volume> = volume;

const volumeMount = s.message('k8s.io.api.core.v1.VolumeMount', 'A volume in the file system of a container.', {
  name: always(1, s.string(), 'Name of the volume.'),
  readOnly: optional(2, s.bool(), 'True mounts it read-only.'),
  recursiveReadOnly: optional(
    7,
    s.string(),
    'Whether read-only reaches nested mounts: Disabled, IfPossible or Enabled.',
    {
      presence: true,
    },
  ),
  mountPath: always(3, s.string(), 'Path in the container, without a colon.'),
  subPath: optional(4, s.string(), 'Path within the volume to mount; its root by default.'),
  mountPropagation: optional(
    5,
    s.string({ values: ['Bidirectional', 'HostToContainer', 'None'] }),
    'None, HostToContainer or Bidirectional.',
    { presence: true },
  ),
  subPathExpr: optional(6, s.string(), 'As subPath, with $(NAME) replaced from the environment.'),
});
export interface VolumeMount extends Infer<typeof volumeMount> {}
export const VolumeMountSchema: Schema<VolumeMount> = volumeMount;

const volumeDevice = s.message('k8s.io.api.core.v1.VolumeDevice', 'A raw block device in a container.', {
  name: always(1, s.string(), 'Name of the volume, which must come from a claim.'),
  devicePath: always(2, s.string(), 'Path of the device in the container.'),
});
export interface VolumeDevice extends Infer<typeof volumeDevice> {}
export const VolumeDeviceSchema: Schema<VolumeDevice> = volumeDevice;
