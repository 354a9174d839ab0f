import { always, type Infer, optional, required, type Schema, s } from '@keelson/core';
import { LocalObjectReferenceSchema } from './references.ts';

const nfsVolumeSource = s.message('k8s.io.api.core.v1.NFSVolumeSource', 'A directory of an NFS server.', {
  server: always(1, s.string(), 'Host name or address of the server.'),
  path: always(2, s.string(), 'Path that the server exports.'),
  readOnly: optional(3, s.bool(), 'True mounts it read-only.'),
});
export interface NFSVolumeSource extends Infer<typeof nfsVolumeSource> {}
export const NFSVolumeSourceSchema: Schema<NFSVolumeSource> = nfsVolumeSource;

const iscsiVolumeSource = s.message('k8s.io.api.core.v1.ISCSIVolumeSource', 'A disk reached over iSCSI.', {
  targetPortal: always(1, s.string(), 'Address of the target, with port unless 860 or 3260.'),
  iqn: always(2, s.string(), 'Qualified name of the target.'),
  lun: always(3, s.int32(), 'Number of the logical unit.'),
  iscsiInterface: optional(4, s.string(), 'Interface that uses the transport.', { default: 'default' }),
  fsType: optional(5, s.string(), 'File system to mount, e.g. ext4.'),
  readOnly: optional(6, s.bool(), 'True mounts it read-only.'),
  portals: optional(7, s.list(s.string(), { listType: 'atomic' }), 'Further addresses of the target.'),
  chapAuthDiscovery: optional(8, s.bool(), 'True uses CHAP for discovery.'),
  chapAuthSession: optional(11, s.bool(), 'True uses CHAP for the session.'),
  secretRef: optional(10, LocalObjectReferenceSchema, 'Secret with the CHAP credentials.'),
  initiatorName: optional(12, s.string(), 'Qualified name of the initiator.', { presence: true }),
});
export interface ISCSIVolumeSource extends Infer<typeof iscsiVolumeSource> {}
export const ISCSIVolumeSourceSchema: Schema<ISCSIVolumeSource> = iscsiVolumeSource;

const fcVolumeSource = s.message('k8s.io.api.core.v1.FCVolumeSource', 'A disk reached over Fibre Channel.', {
  targetWWNs: optional(1, s.list(s.string(), { listType: 'atomic' }), 'World-wide names of the targets, with lun.'),
  lun: optional(2, s.int32(), 'Number of the logical unit.', { presence: true }),
  fsType: optional(3, s.string(), 'File system to mount, e.g. ext4.'),
  readOnly: optional(4, s.bool(), 'True mounts it read-only.'),
  wwids: optional(
    5,
    s.list(s.string(), { listType: 'atomic' }),
    'World-wide identifiers of the volume, instead of targetWWNs and lun.',
  ),
});
export interface FCVolumeSource extends Infer<typeof fcVolumeSource> {}
export const FCVolumeSourceSchema: Schema<FCVolumeSource> = fcVolumeSource;

const glusterfsVolumeSource = s.message('k8s.io.api.core.v1.GlusterfsVolumeSource', 'A Glusterfs volume.', {
  endpoints: always(1, s.string(), 'Name of the Endpoints that lists the servers.'),
  path: always(2, s.string(), 'Name of the volume.'),
  readOnly: optional(3, s.bool(), 'True mounts it read-only.'),
});
export interface GlusterfsVolumeSource extends Infer<typeof glusterfsVolumeSource> {}
export const GlusterfsVolumeSourceSchema: Schema<GlusterfsVolumeSource> = glusterfsVolumeSource;

const cephFSVolumeSource = s.message('k8s.io.api.core.v1.CephFSVolumeSource', 'A Ceph file system.', {
  monitors: always(1, s.list(s.string(), { listType: 'atomic' }), 'Addresses of the monitors.'),
  path: optional(2, s.string(), 'Directory to mount, `/` by default.'),
  user: optional(3, s.string(), 'User name, admin by default.'),
  secretFile: optional(4, s.string(), 'File with the key of the user.'),
  secretRef: optional(5, LocalObjectReferenceSchema, 'Secret with the key, instead of secretFile.'),
  readOnly: optional(6, s.bool(), 'True mounts it read-only.'),
});
export interface CephFSVolumeSource extends Infer<typeof cephFSVolumeSource> {}
export const CephFSVolumeSourceSchema: Schema<CephFSVolumeSource> = cephFSVolumeSource;

const rbdVolumeSource = s.message('k8s.io.api.core.v1.RBDVolumeSource', 'A Ceph block device.', {
  monitors: always(1, s.list(s.string(), { listType: 'atomic' }), 'Addresses of the monitors.'),
  image: always(2, s.string(), 'Name of the image.'),
  fsType: optional(3, s.string(), 'File system to mount, e.g. ext4.'),
  pool: optional(4, s.string(), 'Pool of the image.', { default: 'rbd' }),
  user: optional(5, s.string(), 'User name.', { default: 'admin' }),
  keyring: optional(6, s.string(), 'File with the keys.', { default: '/etc/ceph/keyring' }),
  secretRef: optional(7, LocalObjectReferenceSchema, 'Secret with the key, instead of keyring.'),
  readOnly: optional(8, s.bool(), 'True mounts it read-only.'),
});
export interface RBDVolumeSource extends Infer<typeof rbdVolumeSource> {}
export const RBDVolumeSourceSchema: Schema<RBDVolumeSource> = rbdVolumeSource;

const flockerVolumeSource = s.message(
  'k8s.io.api.core.v1.FlockerVolumeSource',
  'A Flocker dataset; by name or by UUID.',
  {
    datasetName: optional(1, s.string(), 'Name of the dataset.'),
    datasetUUID: optional(2, s.string(), 'UUID of the dataset.'),
  },
);
export interface FlockerVolumeSource extends Infer<typeof flockerVolumeSource> {}
export const FlockerVolumeSourceSchema: Schema<FlockerVolumeSource> = flockerVolumeSource;

const quobyteVolumeSource = s.message('k8s.io.api.core.v1.QuobyteVolumeSource', 'A Quobyte volume.', {
  registry: always(1, s.string(), 'Registries as host:port, separated by commas.'),
  volume: always(2, s.string(), 'Name of the volume.'),
  readOnly: optional(3, s.bool(), 'True mounts it read-only.'),
  user: optional(4, s.string(), 'User to map access to.'),
  group: optional(5, s.string(), 'Group to map access to.'),
  tenant: optional(6, s.string(), 'Tenant that owns the volume.'),
});
export interface QuobyteVolumeSource extends Infer<typeof quobyteVolumeSource> {}
export const QuobyteVolumeSourceSchema: Schema<QuobyteVolumeSource> = quobyteVolumeSource;

const scaleIOVolumeSource = s.message('k8s.io.api.core.v1.ScaleIOVolumeSource', 'A ScaleIO volume.', {
  gateway: always(1, s.string(), 'Address of the gateway.'),
  system: always(2, s.string(), 'Name of the storage system.'),
  secretRef: required(3, LocalObjectReferenceSchema, 'Secret with the credentials.'),
  sslEnabled: optional(4, s.bool(), 'True uses TLS for connections to the gateway.'),
  protectionDomain: optional(5, s.string(), 'Protection domain of the storage.'),
  storagePool: optional(6, s.string(), 'Storage pool in the domain.'),
  storageMode: optional(7, s.string(), 'ThinProvisioned or ThickProvisioned.', { default: 'ThinProvisioned' }),
  volumeName: optional(8, s.string(), 'Name of the volume.'),
  fsType: optional(9, s.string(), 'File system to mount.', { default: 'xfs' }),
  readOnly: optional(10, s.bool(), 'True mounts it read-only.'),
});
export interface ScaleIOVolumeSource extends Infer<typeof scaleIOVolumeSource> {}
export const ScaleIOVolumeSourceSchema: Schema<ScaleIOVolumeSource> = scaleIOVolumeSource;

const storageOSVolumeSource = s.message('k8s.io.api.core.v1.StorageOSVolumeSource', 'A StorageOS volume.', {
  volumeName: optional(1, s.string(), 'Name of the volume.'),
  volumeNamespace: optional(2, s.string(), "Namespace within StorageOS; the pod's by default."),
  fsType: optional(3, s.string(), 'File system to mount, e.g. ext4.'),
  readOnly: optional(4, s.bool(), 'True mounts it read-only.'),
  secretRef: optional(5, LocalObjectReferenceSchema, 'Secret with the credentials.'),
});
export interface StorageOSVolumeSource extends Infer<typeof storageOSVolumeSource> {}
export const StorageOSVolumeSourceSchema: Schema<StorageOSVolumeSource> = storageOSVolumeSource;
