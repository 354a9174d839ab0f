import {
  always,
  embedded,
  filled,
  type Infer,
  type KubeObject,
  labelSelectorSchema,
  objectMetaSchema,
  optional,
  type Schema,
  s,
  typeMetaFields,
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
    s.list(s.string({ values: ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'] }), {
      listType: 'atomic',
    }),
    'How it is to be mounted: ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod.',
  ),
  selector: optional(4, labelSelectorSchema, 'Labels of the volumes that come into question.'),
  resources: filled(2, VolumeResourceRequirementsSchema, 'Size that is needed.'),
  volumeName: optional(3, s.string(), 'Volume that the claim is bound to.'),
  storageClassName: optional(5, s.string(), 'Class of storage; unset = the default class, empty = none.', {
    presence: true,
  }),
  volumeMode: optional(6, s.string({ values: ['Block', 'Filesystem'] }), 'Filesystem, or Block for a raw device.', {
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

const persistentVolumeClaimCondition = s.message(
  'k8s.io.api.core.v1.PersistentVolumeClaimCondition',
  'One observed condition of a claim.',
  {
    type: always(1, s.string(), 'Type of the condition, e.g. Resizing or FileSystemResizePending.'),
    status: always(2, s.string(), 'True, False or Unknown.'),
    lastProbeTime: optional(3, s.time(), 'When the condition was last probed.'),
    lastTransitionTime: optional(4, s.time(), 'When status last changed.'),
    reason: optional(5, s.string(), 'Reason for the last transition, one CamelCase word.'),
    message: optional(6, s.string(), 'Human-readable message about the last change.'),
  },
);
export interface PersistentVolumeClaimCondition extends Infer<typeof persistentVolumeClaimCondition> {}
export const PersistentVolumeClaimConditionSchema: Schema<PersistentVolumeClaimCondition> =
  persistentVolumeClaimCondition;

const modifyVolumeStatus = s.message(
  'k8s.io.api.core.v1.ModifyVolumeStatus',
  'Progress of a change to another class of attributes.',
  {
    targetVolumeAttributesClassName: optional(1, s.string(), 'The class that is being applied.'),
    status: always(
      2,
      s.string({ values: ['InProgress', 'Infeasible', 'Pending'] }),
      'Pending, InProgress or Infeasible.',
    ),
  },
);
export interface ModifyVolumeStatus extends Infer<typeof modifyVolumeStatus> {}
export const ModifyVolumeStatusSchema: Schema<ModifyVolumeStatus> = modifyVolumeStatus;

const persistentVolumeClaimStatus = s.message(
  'k8s.io.api.core.v1.PersistentVolumeClaimStatus',
  'Observed state of a claim.',
  {
    phase: optional(1, s.string({ values: ['Bound', 'Lost', 'Pending'] }), 'Pending, Bound or Lost.'),
    accessModes: optional(
      2,
      s.list(s.string({ values: ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'] }), {
        listType: 'atomic',
      }),
      'How the bound volume can be mounted.',
    ),
    capacity: optional(3, s.map(s.quantity()), 'Resources of the bound volume.'),
    conditions: optional(4, s.listByKey(PersistentVolumeClaimConditionSchema, 'type'), 'Latest observations.'),
    allocatedResources: optional(5, s.map(s.quantity()), 'Resources that are reserved, also while a resize runs.'),
    allocatedResourceStatuses: optional(7, s.map(s.string()), 'State of a resize, by resource.'),
    currentVolumeAttributesClassName: optional(8, s.string(), 'Class of attributes in use; unset without one.', {
      presence: true,
    }),
    modifyVolumeStatus: optional(9, ModifyVolumeStatusSchema, 'Progress of a change of the attributes.'),
  },
);
export interface PersistentVolumeClaimStatus extends Infer<typeof persistentVolumeClaimStatus> {}
export const PersistentVolumeClaimStatusSchema: Schema<PersistentVolumeClaimStatus> = persistentVolumeClaimStatus;

const persistentVolumeClaim = s.message('k8s.io.api.core.v1.PersistentVolumeClaim', 'A request for storage.', {
  ...typeMetaFields,
  metadata: filled(1, objectMetaSchema, 'Name of the claim and what is attached to it.'),
  spec: embedded(2, PersistentVolumeClaimSpecSchema, 'The requested storage.'),
  status: filled(3, PersistentVolumeClaimStatusSchema, 'Observed state.'),
});
export interface PersistentVolumeClaim extends KubeObject, Infer<typeof persistentVolumeClaim> {}
export const PersistentVolumeClaimSchema: Schema<PersistentVolumeClaim> = persistentVolumeClaim;

const persistentVolumeClaimTemplate = s.message(
  'k8s.io.api.core.v1.PersistentVolumeClaimTemplate',
  'Template of the claims that are created for pods.',
  {
    metadata: filled(1, objectMetaSchema, 'Labels and annotations of the claim.'),
    spec: always(2, PersistentVolumeClaimSpecSchema, 'Spec of the claim.'),
  },
);
export interface PersistentVolumeClaimTemplate extends Infer<typeof persistentVolumeClaimTemplate> {}
export const PersistentVolumeClaimTemplateSchema: Schema<PersistentVolumeClaimTemplate> = persistentVolumeClaimTemplate;

const ephemeralVolumeSource = s.message(
  'k8s.io.api.core.v1.EphemeralVolumeSource',
  'A volume from a claim that is created and deleted with the pod.',
  {
    volumeClaimTemplate: optional(1, PersistentVolumeClaimTemplateSchema, 'Template of the claim.'),
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
