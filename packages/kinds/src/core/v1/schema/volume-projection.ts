import {
  always,
  filled,
  type Infer,
  inline,
  labelSelectorSchema,
  optional,
  required,
  type Schema,
  s,
} from '@keelson/core';
import { KeyToPathSchema, ObjectFieldSelectorSchema, ResourceFieldSelectorSchema } from './key-selectors.ts';
import { LocalObjectReferenceSchema } from './references.ts';

const secretVolumeSource = s.message('k8s.io.api.core.v1.SecretVolumeSource', 'A Secret as files, one for each key.', {
  secretName: optional(1, s.string(), 'Name of the Secret.'),
  items: optional(
    2,
    s.list(KeyToPathSchema, { listType: 'atomic' }),
    'Keys to show and their paths; all keys by default.',
  ),
  defaultMode: optional(3, s.int32(), 'Permission bits of the files, 0 to 511 (octal 0777).', {
    presence: true,
    default: 420,
  }),
  optional: optional(4, s.bool(), 'True lets the pod start although the Secret or a key is missing.', {
    presence: true,
  }),
});
export interface SecretVolumeSource extends Infer<typeof secretVolumeSource> {}
export const SecretVolumeSourceSchema: Schema<SecretVolumeSource> = secretVolumeSource;

const configMapVolumeSource = s.message(
  'k8s.io.api.core.v1.ConfigMapVolumeSource',
  'A ConfigMap as files, one for each key.',
  {
    localObjectReference: inline(1, LocalObjectReferenceSchema),
    items: optional(
      2,
      s.list(KeyToPathSchema, { listType: 'atomic' }),
      'Keys to show and their paths; all keys by default.',
    ),
    defaultMode: optional(3, s.int32(), 'Permission bits of the files, 0 to 511 (octal 0777).', {
      presence: true,
      default: 420,
    }),
    optional: optional(4, s.bool(), 'True lets the pod start although the ConfigMap or a key is missing.', {
      presence: true,
    }),
  },
);
export interface ConfigMapVolumeSource extends Infer<typeof configMapVolumeSource> {}
export const ConfigMapVolumeSourceSchema: Schema<ConfigMapVolumeSource> = configMapVolumeSource;

const downwardAPIVolumeFile = s.message('k8s.io.api.core.v1.DownwardAPIVolumeFile', 'One field of the pod as a file.', {
  path: always(1, s.string(), 'File to write, relative to the mount, without `..`.'),
  fieldRef: optional(2, ObjectFieldSelectorSchema, 'A field of the pod.'),
  resourceFieldRef: optional(3, ResourceFieldSelectorSchema, 'A resource request or limit of a container.'),
  mode: optional(4, s.int32(), 'Permission bits of this file, 0 to 511; by default those of the volume.', {
    presence: true,
  }),
});
export interface DownwardAPIVolumeFile extends Infer<typeof downwardAPIVolumeFile> {}
export const DownwardAPIVolumeFileSchema: Schema<DownwardAPIVolumeFile> = downwardAPIVolumeFile;

const downwardAPIVolumeSource = s.message(
  'k8s.io.api.core.v1.DownwardAPIVolumeSource',
  'Facts about the pod as files.',
  {
    items: optional(1, s.list(DownwardAPIVolumeFileSchema, { listType: 'atomic' }), 'The files.'),
    defaultMode: optional(2, s.int32(), 'Permission bits of the files, 0 to 511 (octal 0777).', {
      presence: true,
      default: 420,
    }),
  },
);
export interface DownwardAPIVolumeSource extends Infer<typeof downwardAPIVolumeSource> {}
export const DownwardAPIVolumeSourceSchema: Schema<DownwardAPIVolumeSource> = downwardAPIVolumeSource;

const secretProjection = s.message('k8s.io.api.core.v1.SecretProjection', 'A Secret as part of a projected volume.', {
  localObjectReference: inline(1, LocalObjectReferenceSchema),
  items: optional(
    2,
    s.list(KeyToPathSchema, { listType: 'atomic' }),
    'Keys to show and their paths; all keys by default.',
  ),
  optional: optional(4, s.bool(), 'True lets the pod start although the Secret or a key is missing.', {
    presence: true,
  }),
});
export interface SecretProjection extends Infer<typeof secretProjection> {}
export const SecretProjectionSchema: Schema<SecretProjection> = secretProjection;

const configMapProjection = s.message(
  'k8s.io.api.core.v1.ConfigMapProjection',
  'A ConfigMap as part of a projected volume.',
  {
    localObjectReference: inline(1, LocalObjectReferenceSchema),
    items: optional(
      2,
      s.list(KeyToPathSchema, { listType: 'atomic' }),
      'Keys to show and their paths; all keys by default.',
    ),
    optional: optional(4, s.bool(), 'True lets the pod start although the ConfigMap or a key is missing.', {
      presence: true,
    }),
  },
);
export interface ConfigMapProjection extends Infer<typeof configMapProjection> {}
export const ConfigMapProjectionSchema: Schema<ConfigMapProjection> = configMapProjection;

const downwardAPIProjection = s.message(
  'k8s.io.api.core.v1.DownwardAPIProjection',
  'Facts about the pod as part of a projected volume.',
  {
    items: optional(1, s.list(DownwardAPIVolumeFileSchema, { listType: 'atomic' }), 'The files.'),
  },
);
export interface DownwardAPIProjection extends Infer<typeof downwardAPIProjection> {}
export const DownwardAPIProjectionSchema: Schema<DownwardAPIProjection> = downwardAPIProjection;

const serviceAccountTokenProjection = s.message(
  'k8s.io.api.core.v1.ServiceAccountTokenProjection',
  "A token of the pod's service account, renewed in time.",
  {
    audience: optional(1, s.string(), 'Intended audience of the token; the API server by default.'),
    expirationSeconds: optional(2, s.int64(), 'Life time in seconds, at least 600.', { presence: true, default: 3600 }),
    path: always(3, s.string(), 'File to write, relative to the mount.'),
  },
);
export interface ServiceAccountTokenProjection extends Infer<typeof serviceAccountTokenProjection> {}
export const ServiceAccountTokenProjectionSchema: Schema<ServiceAccountTokenProjection> = serviceAccountTokenProjection;

const clusterTrustBundleProjection = s.message(
  'k8s.io.api.core.v1.ClusterTrustBundleProjection',
  'Trusted certificates, by bundle name or by signer.',
  {
    name: optional(1, s.string(), 'Name of a bundle; not together with signerName.', { presence: true }),
    signerName: optional(2, s.string(), 'Signer whose bundles are joined.', { presence: true }),
    labelSelector: optional(
      3,
      labelSelectorSchema,
      "Labels of the signer's bundles; unset selects none, empty selects all.",
    ),
    optional: optional(5, s.bool(), 'True lets the pod start although no bundle is there.', { presence: true }),
    path: always(4, s.string(), 'File to write, relative to the mount.'),
  },
);
export interface ClusterTrustBundleProjection extends Infer<typeof clusterTrustBundleProjection> {}
export const ClusterTrustBundleProjectionSchema: Schema<ClusterTrustBundleProjection> = clusterTrustBundleProjection;

const podCertificateProjection = s.message(
  'k8s.io.api.core.v1.PodCertificateProjection',
  'A private key and certificate for the pod, renewed in time.',
  {
    signerName: required(1, s.string(), 'Signer of the certificate.'),
    keyType: required(2, s.string(), 'Kind of key: RSA3072, RSA4096, ECDSAP256, ECDSAP384, ECDSAP521 or ED25519.'),
    maxExpirationSeconds: optional(3, s.int32(), 'Maximum requested validity in seconds.', { presence: true }),
    credentialBundlePath: optional(4, s.string(), 'File for key and certificates together.'),
    keyPath: optional(5, s.string(), 'File for the key alone.'),
    certificateChainPath: optional(6, s.string(), 'File for the certificates alone.'),
    userAnnotations: optional(7, s.map(s.string()), 'Facts handed to the signer.'),
  },
);
export interface PodCertificateProjection extends Infer<typeof podCertificateProjection> {}
export const PodCertificateProjectionSchema: Schema<PodCertificateProjection> = podCertificateProjection;

const volumeProjection = s.message(
  'k8s.io.api.core.v1.VolumeProjection',
  'One part of a projected volume; exactly one field is set.',
  {
    secret: optional(1, SecretProjectionSchema, 'A Secret.'),
    downwardAPI: optional(2, DownwardAPIProjectionSchema, 'Facts about the pod.'),
    configMap: optional(3, ConfigMapProjectionSchema, 'A ConfigMap.'),
    serviceAccountToken: optional(4, ServiceAccountTokenProjectionSchema, 'A token of the service account.'),
    clusterTrustBundle: optional(5, ClusterTrustBundleProjectionSchema, 'Trusted certificates.'),
    podCertificate: optional(6, PodCertificateProjectionSchema, 'A key and certificate for the pod.'),
  },
);
export interface VolumeProjection extends Infer<typeof volumeProjection> {}
export const VolumeProjectionSchema: Schema<VolumeProjection> = volumeProjection;

const projectedVolumeSource = s.message(
  'k8s.io.api.core.v1.ProjectedVolumeSource',
  'Several sources in one directory.',
  {
    sources: filled(1, s.list(VolumeProjectionSchema, { listType: 'atomic' }), 'The parts.'),
    defaultMode: optional(2, s.int32(), 'Permission bits of the files, 0 to 511 (octal 0777).', {
      presence: true,
      default: 420,
    }),
  },
);
export interface ProjectedVolumeSource extends Infer<typeof projectedVolumeSource> {}
export const ProjectedVolumeSourceSchema: Schema<ProjectedVolumeSource> = projectedVolumeSource;
