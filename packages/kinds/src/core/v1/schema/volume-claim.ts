import {
  always,
  filled,
  type Infer,
  labelSelectorSchema,
  objectMetaSchema,
  optional,
  type Schema,
  s,
} from '@keelson/core';
import { TypedLocalObjectReferenceSchema, TypedObjectReferenceSchema } from './references.ts';

const volumeResourceRequirements = s.message(
  'k8s.io.api.core.v1.VolumeResourceRequirements',
  'Size of a claimed volume.',
  {
    limits: optional(1, s.map(s.quantity()), 'Most that may be used, by resource.'),
    requests: optional(2, s.map(s.quantity()), 'Least that is needed, by resource; storage is the size.'),
  },
);
export interface VolumeResourceRequirements extends Infer<typeof volumeResourceRequirements> {}
export const VolumeResourceRequirementsSchema: Schema<VolumeResourceRequirements> = volumeResourceRequirements;

const persistentVolumeClaimSpec = s.message('k8s.io.api.core.v1.PersistentVolumeClaimSpec', 'The requested storage.', {
  accessModes: optional(
    1,
    s.list(s.string(), { listType: 'atomic' }),
    'How it is to be mounted: ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod.',
  ),
  selector: optional(4, labelSelectorSchema, 'Labels of the volumes that come into question.'),
  resources: filled(2, VolumeResourceRequirementsSchema, 'Size that is needed.'),
  volumeName: optional(3, s.string(), 'Volume that the claim is bound to.'),
  storageClassName: optional(5, s.string(), 'Class of storage; unset = the default class, empty = none.', {
    presence: true,
  }),
  volumeMode: optional(6, s.string(), 'Filesystem, or Block for a raw device.', {
    presence: true,
    default: 'Filesystem',
  }),
  dataSource: optional(
    7,
    TypedLocalObjectReferenceSchema,
    'Object that the volume is filled from: a snapshot or another claim.',
  ),
  dataSourceRef: optional(8, TypedObjectReferenceSchema, 'Object that the volume is filled from, of any kind.'),
  volumeAttributesClassName: optional(9, s.string(), 'Class of attributes that may be changed later.', {
    presence: true,
  }),
});
export interface PersistentVolumeClaimSpec extends Infer<typeof persistentVolumeClaimSpec> {}
export const PersistentVolumeClaimSpecSchema: Schema<PersistentVolumeClaimSpec> = persistentVolumeClaimSpec;

const persistentVolumeClaimTemplate = s.message(
  'k8s.io.api.core.v1.PersistentVolumeClaimTemplate',
  'Form of the claims made for pods.',
  {
    metadata: filled(1, objectMetaSchema, 'Labels and annotations of the claim.'),
    spec: always(2, PersistentVolumeClaimSpecSchema, 'Spec of the claim.'),
  },
);
export interface PersistentVolumeClaimTemplate extends Infer<typeof persistentVolumeClaimTemplate> {}
export const PersistentVolumeClaimTemplateSchema: Schema<PersistentVolumeClaimTemplate> = persistentVolumeClaimTemplate;

const ephemeralVolumeSource = s.message(
  'k8s.io.api.core.v1.EphemeralVolumeSource',
  'A volume from a claim that lives and dies with the pod.',
  {
    volumeClaimTemplate: optional(1, PersistentVolumeClaimTemplateSchema, 'Form of the claim.'),
  },
);
export interface EphemeralVolumeSource extends Infer<typeof ephemeralVolumeSource> {}
export const EphemeralVolumeSourceSchema: Schema<EphemeralVolumeSource> = ephemeralVolumeSource;

const persistentVolumeClaimVolumeSource = s.message(
  'k8s.io.api.core.v1.PersistentVolumeClaimVolumeSource',
  'A volume from an existing claim.',
  {
    claimName: always(1, s.string(), "Name of the claim in the pod's namespace."),
    readOnly: optional(2, s.bool(), 'True mounts it read-only everywhere.'),
  },
);
export interface PersistentVolumeClaimVolumeSource extends Infer<typeof persistentVolumeClaimVolumeSource> {}
export const PersistentVolumeClaimVolumeSourceSchema: Schema<PersistentVolumeClaimVolumeSource> =
  persistentVolumeClaimVolumeSource;
