import {
  type Column,
  defineKind,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  type FieldError,
  fieldError,
  type KindDefinition,
} from '@keelson/core';
import { ageColumn, column, nameColumn, wide } from '../../columns/columns.ts';
import {
  checkLabelSelector,
  checkName,
  checkText,
  type Errors,
  newErrors,
  pushInvalid,
  sameJson,
} from '../../validation/checks.ts';
import { compareAmounts, isNegativeAmount, isWholeQuantity } from '../../validation/quantities.ts';
import {
  accessModesText,
  betaClassAdvice,
  betaClassAnnotation,
  checkAccessModes,
  checkClassAndMode,
  checkPositiveAmount,
  storageClassOf,
} from '../../validation/volumes.ts';
import {
  PersistentVolumeClaimSchema,
  type PersistentVolumeClaimSpec,
  type PersistentVolumeClaim as PersistentVolumeClaimType,
  type TypedObjectReference,
} from './schema/index.ts';

const columns: readonly Column<PersistentVolumeClaimType>[] = [
  nameColumn(),
  column('Status', 'string', 'Phase.', ({ metadata, status }) =>
    metadata?.deletionTimestamp ? 'Terminating' : (status?.phase ?? ''),
  ),
  column('Volume', 'string', 'The bound volume.', ({ spec }) => spec.volumeName ?? ''),
  column('Capacity', 'string', 'Size of the volume.', ({ spec, status }) =>
    spec.volumeName ? (status?.capacity?.['storage'] ?? '0') : '',
  ),
  column('Access Modes', 'string', 'How the volume can be mounted.', ({ spec, status }) =>
    spec.volumeName ? accessModesText(status?.accessModes) : '',
  ),
  column('StorageClass', 'string', 'Class of the volume.', storageClassOf),
  column(
    'VolumeAttributesClass',
    'string',
    'Class of its attributes.',
    ({ spec }) => spec.volumeAttributesClassName ?? '<unset>',
  ),
  ageColumn,
  wide('VolumeMode', 'string', 'Filesystem or Block.', ({ spec }) => spec.volumeMode ?? '<unset>'),
];

/** A request for storage. */
export const PersistentVolumeClaim: KindDefinition<PersistentVolumeClaimType> = defineKind({
  group: '',
  version: 'v1',
  kind: 'PersistentVolumeClaim',
  names: { shortNames: ['pvc'] },
  schema: PersistentVolumeClaimSchema,
  strategy: {
    generation: 'none',
    deleteReturnsObject: true,
    default(claim) {
      claim.status = { ...claim.status, phase: claim.status?.phase || 'Pending' };
    },
    prepareForCreate(claim) {
      claim.status = { phase: 'Pending' };
      // Sources in other namespaces are off in Kubernetes.
      if (claim.spec.dataSourceRef?.namespace) delete claim.spec.dataSourceRef;
      completeDataSource(claim.spec);
    },
    validate: validateClaim,
    validateUpdate,
    warnings: claimWarnings,
    validateStatusUpdate({ status }) {
      const errors = newErrors();
      for (const field of ['capacity', 'allocatedResources'] as const) {
        for (const [name, amount] of Object.entries(status?.[field] ?? {})) {
          if (!isNegativeAmount(amount)) continue;
          errors.push(fieldError.invalid(`status.${field}[${name}]`, amount, 'must be a valid resource quantity'));
        }
      }
      return errors;
    },
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns,
});
export type PersistentVolumeClaim = PersistentVolumeClaimType;

/**
 * Copies `dataSource` to the newer `dataSourceRef`, and vice versa. A `dataSource` without `dataSourceRef` is removed
 * unless it is a claim or a snapshot.
 */
function completeDataSource(spec: PersistentVolumeClaimSpec): void {
  const { dataSource, dataSourceRef } = spec;
  if (dataSource && !dataSourceRef) {
    const { apiGroup = '', kind } = dataSource;
    const isKnown =
      (apiGroup === '' && kind === 'PersistentVolumeClaim') ||
      (apiGroup === 'snapshot.storage.k8s.io' && kind === 'VolumeSnapshot');
    if (isKnown) spec.dataSourceRef = { ...dataSource };
    else delete spec.dataSource;
  } else if (dataSourceRef && !dataSource && !dataSourceRef.namespace) {
    const { namespace: _, ...reference } = dataSourceRef;
    spec.dataSource = reference;
  }
}

function validateClaim({ spec }: PersistentVolumeClaimType): FieldError[] {
  const errors = newErrors();
  checkAccessModes(spec.accessModes, 'spec.accessModes', errors, 'at least 1 access mode is required');
  checkLabelSelector(spec.selector, 'spec.selector', errors);
  const size = spec.resources?.requests?.['storage'];
  if (size === undefined) errors.push(fieldError.required('spec.resources[storage]'));
  else checkPositiveAmount(size, 'spec.resources[storage]', errors);
  checkClassAndMode(spec, 'spec', errors);
  const { dataSource, dataSourceRef } = spec;
  if (dataSource) checkDataSource(dataSource, 'spec.dataSource', errors);
  if (dataSourceRef) checkDataSource(dataSourceRef, 'spec.dataSourceRef', errors);
  if (dataSource && dataSourceRef?.namespace) {
    const text = 'may not be specified when dataSourceRef.namespace is specified';
    errors.push(fieldError.invalid('spec', 'spec.dataSource', text));
  } else if (dataSource && dataSourceRef && !isSameSource(dataSource, dataSourceRef)) {
    errors.push(fieldError.invalid('spec', 'spec.dataSource', 'must match dataSourceRef'));
  }
  checkName(spec.volumeAttributesClassName, 'dns1123Subdomain', 'spec.volumeAttributesClassName', errors);
  return errors;
}

function claimWarnings({ metadata, spec }: PersistentVolumeClaimType): string[] {
  const warnings: string[] = [];
  if (metadata?.annotations?.[betaClassAnnotation] !== undefined) {
    warnings.push(`metadata.annotations[${betaClassAnnotation}]: ${betaClassAdvice}`);
  }
  for (const field of ['requests', 'limits'] as const) {
    const amount = spec.resources?.[field]?.['storage'];
    if (amount === undefined || isWholeQuantity(amount)) continue;
    const detail = `fractional byte value ${JSON.stringify(amount)} is invalid, must be an integer`;
    warnings.push(`spec.resources.${field}[storage]: ${detail}`);
  }
  return warnings;
}

function isSameSource(a: TypedObjectReference, b: TypedObjectReference): boolean {
  return (a.apiGroup ?? '') === (b.apiGroup ?? '') && a.kind === b.kind && a.name === b.name;
}

function checkDataSource(source: TypedObjectReference, path: string, errors: Errors): void {
  const { name, kind, apiGroup = '', namespace } = source;
  checkText(name, `${path}.name`, errors);
  checkText(kind, `${path}.kind`, errors);
  if (apiGroup !== '') pushInvalid(dns1123SubdomainErrors(apiGroup), apiGroup, `${path}.apiGroup`, errors);
  else if (kind !== 'PersistentVolumeClaim') {
    const text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
    errors.push(fieldError.invalid(path, kind, text));
  }
  if (namespace) pushInvalid(dns1123LabelErrors(namespace), namespace, `${path}.namespace`, errors);
}

function validateUpdate(claim: PersistentVolumeClaimType, old: PersistentVolumeClaimType): FieldError[] {
  const errors = newErrors();
  const annotation = claim.metadata?.annotations?.[betaClassAnnotation] ?? '';
  if (annotation !== (old.metadata?.annotations?.[betaClassAnnotation] ?? '')) {
    errors.push(fieldError.invalid(`metadata.annotations.${betaClassAnnotation}`, annotation, 'field is immutable'));
  }
  if (!sameJson(comparable(claim, old), old.spec)) {
    const text =
      'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';
    errors.push(fieldError.forbidden('spec', text));
  }
  const sizeOf = (one: PersistentVolumeClaimType) => one.spec.resources?.requests?.['storage'] ?? '0';
  const capacity = old.status?.capacity?.['storage'] ?? '0';
  const isSmaller = (compareAmounts(sizeOf(claim), sizeOf(old)) ?? 0) < 0;
  if (isSmaller && (compareAmounts(sizeOf(claim), capacity) ?? 0) <= 0) {
    const text = 'field can not be less than status.capacity';
    errors.push(fieldError.forbidden('spec.resources.requests.storage', text));
  }
  if (claim.spec.volumeMode !== old.spec.volumeMode) {
    errors.push(fieldError.invalid('volumeMode', claim.spec.volumeMode ?? null, 'field is immutable'));
  }
  const isChanged = claim.spec.volumeAttributesClassName !== old.spec.volumeAttributesClassName;
  const isUsed = old.status?.currentVolumeAttributesClassName !== undefined;
  if (isChanged && isUsed && !claim.spec.volumeAttributesClassName) {
    const given = claim.spec.volumeAttributesClassName === undefined ? 'nil' : 'empty string';
    const text = `update to ${given} is forbidden when status.currentVolumeAttributesClassName is not nil`;
    errors.push(fieldError.forbidden('spec.volumeAttributesClassName', text));
  }
  return errors;
}

/** The new spec with the old values of all fields that may be changed. It must equal the old spec. */
function comparable(
  { spec, status }: PersistentVolumeClaimType,
  { metadata, spec: old }: PersistentVolumeClaimType,
): PersistentVolumeClaimSpec {
  const { volumeName, storageClassName, volumeAttributesClassName, ...result } = structuredClone(spec);
  const isBound = status?.phase === 'Bound';
  const size = old.resources?.requests?.['storage'];
  if (isBound && result.resources?.requests && size !== undefined) result.resources.requests['storage'] = size;
  const keptName = old.volumeName ? volumeName : old.volumeName;
  const keptAttributes = isBound ? old.volumeAttributesClassName : volumeAttributesClassName;
  // The default class may be set later in a claim without a class.
  const isFirstClass = old.storageClassName === undefined && !metadata?.annotations?.[betaClassAnnotation];
  const keptClass = isFirstClass ? undefined : storageClassName;
  return {
    ...result,
    ...(keptName === undefined ? {} : { volumeName: keptName }),
    ...(keptClass === undefined ? {} : { storageClassName: keptClass }),
    ...(keptAttributes === undefined ? {} : { volumeAttributesClassName: keptAttributes }),
  };
}
