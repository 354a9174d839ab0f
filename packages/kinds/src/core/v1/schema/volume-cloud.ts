import { always, type Infer, optional, type Schema, s } from '@keelson/core';
import { LocalObjectReferenceSchema } from './references.ts';

const gcePersistentDiskVolumeSource = s.message(
  'k8s.io.api.core.v1.GCEPersistentDiskVolumeSource',
  'A disk of Google Compute Engine.',
  {
    pdName: always(1, s.string(), 'Name of the disk.'),
    fsType: optional(2, s.string(), 'File system to mount, e.g. ext4.'),
    partition: optional(3, s.int32(), 'Partition to mount; 0 or unset for the whole disk.'),
    readOnly: optional(4, s.bool(), 'True mounts it read-only.'),
  },
);
export interface GCEPersistentDiskVolumeSource extends Infer<typeof gcePersistentDiskVolumeSource> {}
export const GCEPersistentDiskVolumeSourceSchema: Schema<GCEPersistentDiskVolumeSource> = gcePersistentDiskVolumeSource;

const awsElasticBlockStoreVolumeSource = s.message(
  'k8s.io.api.core.v1.AWSElasticBlockStoreVolumeSource',
  'A disk of Amazon Elastic Block Store.',
  {
    volumeID: always(1, s.string(), 'ID of the disk.'),
    fsType: optional(2, s.string(), 'File system to mount, e.g. ext4.'),
    partition: optional(3, s.int32(), 'Partition to mount; 0 or unset for the whole disk.'),
    readOnly: optional(4, s.bool(), 'True mounts it read-only.'),
  },
);
export interface AWSElasticBlockStoreVolumeSource extends Infer<typeof awsElasticBlockStoreVolumeSource> {}
export const AWSElasticBlockStoreVolumeSourceSchema: Schema<AWSElasticBlockStoreVolumeSource> =
  awsElasticBlockStoreVolumeSource;

const azureDiskVolumeSource = s.message('k8s.io.api.core.v1.AzureDiskVolumeSource', 'A data disk of Azure.', {
  diskName: always(1, s.string(), 'Name of the disk.'),
  diskURI: always(2, s.string(), 'URI of the disk.'),
  cachingMode: optional(
    3,
    s.string({ values: ['None', 'ReadOnly', 'ReadWrite'] }),
    'Host caching: None, ReadOnly or ReadWrite.',
    {
      presence: true,
      default: 'ReadWrite',
    },
  ),
  fsType: optional(4, s.string(), 'File system to mount.', { presence: true, default: 'ext4' }),
  readOnly: optional(5, s.bool(), 'True mounts it read-only.', { presence: true, default: false }),
  kind: optional(6, s.string({ values: ['Dedicated', 'Managed', 'Shared'] }), 'Shared, Dedicated or Managed.', {
    presence: true,
    default: 'Shared',
  }),
});
export interface AzureDiskVolumeSource extends Infer<typeof azureDiskVolumeSource> {}
export const AzureDiskVolumeSourceSchema: Schema<AzureDiskVolumeSource> = azureDiskVolumeSource;

const azureFileVolumeSource = s.message('k8s.io.api.core.v1.AzureFileVolumeSource', 'A file share of Azure.', {
  secretName: always(1, s.string(), 'Secret with the name and key of the storage account.'),
  shareName: always(2, s.string(), 'Name of the share.'),
  readOnly: optional(3, s.bool(), 'True mounts it read-only.'),
});
export interface AzureFileVolumeSource extends Infer<typeof azureFileVolumeSource> {}
export const AzureFileVolumeSourceSchema: Schema<AzureFileVolumeSource> = azureFileVolumeSource;

const cinderVolumeSource = s.message('k8s.io.api.core.v1.CinderVolumeSource', 'A volume of OpenStack Cinder.', {
  volumeID: always(1, s.string(), 'ID of the volume.'),
  fsType: optional(2, s.string(), 'File system to mount, e.g. ext4.'),
  readOnly: optional(3, s.bool(), 'True mounts it read-only.'),
  secretRef: optional(4, LocalObjectReferenceSchema, 'Secret with the credentials.'),
});
export interface CinderVolumeSource extends Infer<typeof cinderVolumeSource> {}
export const CinderVolumeSourceSchema: Schema<CinderVolumeSource> = cinderVolumeSource;

const vsphereVirtualDiskVolumeSource = s.message(
  'k8s.io.api.core.v1.VsphereVirtualDiskVolumeSource',
  'A virtual disk of vSphere.',
  {
    volumePath: always(1, s.string(), 'Path of the disk.'),
    fsType: optional(2, s.string(), 'File system to mount, e.g. ext4.'),
    storagePolicyName: optional(3, s.string(), 'Name of the storage policy.'),
    storagePolicyID: optional(4, s.string(), 'ID of the storage policy.'),
  },
);
export interface VsphereVirtualDiskVolumeSource extends Infer<typeof vsphereVirtualDiskVolumeSource> {}
export const VsphereVirtualDiskVolumeSourceSchema: Schema<VsphereVirtualDiskVolumeSource> =
  vsphereVirtualDiskVolumeSource;

const photonPersistentDiskVolumeSource = s.message(
  'k8s.io.api.core.v1.PhotonPersistentDiskVolumeSource',
  'A disk of Photon Controller.',
  {
    pdID: always(1, s.string(), 'ID of the disk.'),
    fsType: optional(2, s.string(), 'File system to mount, e.g. ext4.'),
  },
);
export interface PhotonPersistentDiskVolumeSource extends Infer<typeof photonPersistentDiskVolumeSource> {}
export const PhotonPersistentDiskVolumeSourceSchema: Schema<PhotonPersistentDiskVolumeSource> =
  photonPersistentDiskVolumeSource;

const portworxVolumeSource = s.message('k8s.io.api.core.v1.PortworxVolumeSource', 'A Portworx volume.', {
  volumeID: always(1, s.string(), 'ID of the volume.'),
  fsType: optional(2, s.string(), 'File system to mount, e.g. ext4.'),
  readOnly: optional(3, s.bool(), 'True mounts it read-only.'),
});
export interface PortworxVolumeSource extends Infer<typeof portworxVolumeSource> {}
export const PortworxVolumeSourceSchema: Schema<PortworxVolumeSource> = portworxVolumeSource;

const flexVolumeSource = s.message(
  'k8s.io.api.core.v1.FlexVolumeSource',
  'A volume from an exec-style driver (deprecated).',
  {
    driver: always(1, s.string(), 'Name of the driver.'),
    fsType: optional(2, s.string(), 'File system to mount; the driver decides by default.'),
    secretRef: optional(3, LocalObjectReferenceSchema, 'Secret that is handed to the driver.'),
    readOnly: optional(4, s.bool(), 'True mounts it read-only.'),
    options: optional(5, s.map(s.string()), 'Further options for the driver.'),
  },
);
export interface FlexVolumeSource extends Infer<typeof flexVolumeSource> {}
export const FlexVolumeSourceSchema: Schema<FlexVolumeSource> = flexVolumeSource;

const csiVolumeSource = s.message(
  'k8s.io.api.core.v1.CSIVolumeSource',
  'A volume that a CSI driver provides for this pod alone.',
  {
    driver: always(1, s.string(), 'Name of the driver.'),
    readOnly: optional(2, s.bool(), 'True mounts it read-only.', { presence: true }),
    fsType: optional(3, s.string(), 'File system to mount; the driver decides by default.', { presence: true }),
    volumeAttributes: optional(4, s.map(s.string()), 'Properties that the driver understands.'),
    nodePublishSecretRef: optional(
      5,
      LocalObjectReferenceSchema,
      'Secret handed to the driver when it mounts the volume.',
    ),
  },
);
export interface CSIVolumeSource extends Infer<typeof csiVolumeSource> {}
export const CSIVolumeSourceSchema: Schema<CSIVolumeSource> = csiVolumeSource;
