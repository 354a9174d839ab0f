import { type Column, defineKind, type FieldError, fieldError, formatTime, type KindDefinition } from '@keelson/core';
import { ageColumn, column, nameColumn, wide } from '../../columns/columns.ts';
import { newErrors, sameJson } from '../../validation/checks.ts';
import { expressionWarnings } from '../../validation/deprecated-labels.ts';
import {
  accessModesText,
  betaClassAdvice,
  betaClassAnnotation,
  mountOptionsAnnotation,
  storageClassOf,
} from '../../validation/volumes.ts';
import { checkVolumeSpec, sourceOfVolume } from './persistent-volume/check-volume-spec.ts';
import { PersistentVolumeSchema, type PersistentVolume as PersistentVolumeType } from './schema/index.ts';

const columns: readonly Column<PersistentVolumeType>[] = [
  nameColumn(),
  column('Capacity', 'string', 'Size.', ({ spec }) => spec.capacity?.['storage'] ?? '0'),
  column('Access Modes', 'string', 'How it can be mounted.', ({ spec }) => accessModesText(spec.accessModes)),
  column('Reclaim Policy', 'string', 'What follows the claim.', ({ spec }) => spec.persistentVolumeReclaimPolicy ?? ''),
  column('Status', 'string', 'Phase.', ({ metadata, status }) =>
    metadata?.deletionTimestamp ? 'Terminating' : (status?.phase ?? ''),
  ),
  column('Claim', 'string', 'The claim that is bound to it.', ({ spec }) =>
    spec.claimRef ? `${spec.claimRef.namespace ?? ''}/${spec.claimRef.name ?? ''}` : '',
  ),
  column('StorageClass', 'string', 'Class of the volume.', storageClassOf),
  column(
    'VolumeAttributesClass',
    'string',
    'Class of its attributes.',
    ({ spec }) => spec.volumeAttributesClassName ?? '<unset>',
  ),
  column('Reason', 'string', 'Reason of a failure.', ({ status }) => status?.reason ?? ''),
  ageColumn,
  wide('VolumeMode', 'string', 'Filesystem or Block.', ({ spec }) => spec.volumeMode ?? '<unset>'),
];

/** A piece of storage of the cluster. */
export const PersistentVolume: KindDefinition<PersistentVolumeType> = defineKind({
  group: '',
  version: 'v1',
  kind: 'PersistentVolume',
  scope: 'Cluster',
  names: { shortNames: ['pv'] },
  schema: PersistentVolumeSchema,
  strategy: {
    generation: 'none',
    deleteReturnsObject: true,
    default(volume) {
      volume.status = { ...volume.status, phase: volume.status?.phase || 'Pending' };
    },
    prepareForCreate(volume, { now }) {
      volume.status = { phase: 'Pending', lastPhaseTransitionTime: formatTime(now) };
    },
    prepareForStatusUpdate({ status }, { status: old }, { now }) {
      if (!status) return;
      const known = old?.lastPhaseTransitionTime;
      if (status.phase === old?.phase) {
        if (known !== undefined) status.lastPhaseTransitionTime ??= known;
      } else if (status.lastPhaseTransitionTime === undefined || status.lastPhaseTransitionTime === known) {
        status.lastPhaseTransitionTime = formatTime(now);
      }
    },
    validate({ spec }) {
      const errors = newErrors();
      checkVolumeSpec(spec, false, 'spec', errors);
      return errors;
    },
    validateUpdate,
    warnings: volumeWarnings,
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns,
});
export type PersistentVolume = PersistentVolumeType;

/** Source fields of removed volume plugins, and when these were removed. */
const removedSources = [
  ['cephfs', 'deprecated in v1.28, non-functional in v1.31+'],
  ['photonPersistentDisk', 'deprecated in v1.11, non-functional in v1.16+'],
  ['scaleIO', 'deprecated in v1.16, non-functional in v1.22+'],
  ['storageos', 'deprecated in v1.22, non-functional in v1.25+', 'storageOS'],
  ['glusterfs', 'deprecated in v1.25, non-functional in v1.26+'],
  ['rbd', 'deprecated in v1.28, non-functional in v1.31+'],
] as const;

function volumeWarnings({ metadata, spec }: PersistentVolumeType): string[] {
  const warnings: string[] = [];
  for (const [key, text] of [
    [betaClassAnnotation, betaClassAdvice],
    [mountOptionsAnnotation, 'deprecated since v1.31; use "mountOptions" attribute instead'],
  ] as const) {
    if (metadata?.annotations?.[key] !== undefined) warnings.push(`metadata.annotations[${key}]: ${text}`);
  }
  if (spec.persistentVolumeReclaimPolicy === 'Recycle') {
    const advice = 'Instead, the recommended approach is to use dynamic provisioning.';
    warnings.push(`spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. ${advice}`);
  }
  spec.nodeAffinity?.required?.nodeSelectorTerms.forEach(({ matchExpressions }, i) => {
    const path = `spec.nodeAffinity.required.nodeSelectorTerms[${i}]`;
    warnings.push(...expressionWarnings(matchExpressions, path));
  });
  for (const [field, text, name = field] of removedSources) if (spec[field]) warnings.push(`spec.${name}: ${text}`);
  return warnings;
}

function validateUpdate({ spec }: PersistentVolumeType, { spec: old }: PersistentVolumeType): FieldError[] {
  const errors = newErrors();
  const source = sourceOfVolume(spec);
  // `controllerExpandSecretRef` may be added to a CSI volume later.
  const added = old.csi && !old.csi.controllerExpandSecretRef && source.csi?.controllerExpandSecretRef;
  const { controllerExpandSecretRef: _, ...csi } = source.csi ?? {};
  if (!sameJson(added ? { ...source, csi } : source, sourceOfVolume(old))) {
    const text = 'spec.persistentvolumesource is immutable after creation';
    errors.push(fieldError.forbidden('spec.persistentvolumesource', text));
  }
  if (spec.volumeMode !== old.volumeMode) {
    errors.push(fieldError.invalid('volumeMode', spec.volumeMode ?? null, 'field is immutable'));
  }
  if (old.nodeAffinity && !sameJson(spec.nodeAffinity, old.nodeAffinity)) {
    const text = 'field is immutable, except for updating from beta label to GA';
    errors.push(fieldError.invalid('nodeAffinity', spec.nodeAffinity ?? null, text));
  }
  if (old.volumeAttributesClassName !== undefined && spec.volumeAttributesClassName === undefined) {
    const text = 'update from non-nil value to nil is forbidden';
    errors.push(fieldError.forbidden('spec.volumeAttributesClassName', text));
  }
  return errors;
}
