import {
  type Column,
  defineKind,
  type FieldError,
  fieldError,
  type KindDefinition,
  qualifiedNameErrors,
} from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import type { TopologySelectorTerm } from '../../core/v1/schema/index.ts';
import {
  checkOneOf,
  checkRequiredOneOf,
  checkText,
  checkUnchanged,
  type Errors,
  newErrors,
  pushInvalid,
  sameJson,
} from '../../validation/checks.ts';
import { labelWarnings } from '../../validation/deprecated-labels.ts';
import { StorageClassSchema, type StorageClass as StorageClassType } from './schema.ts';

const maxParameters = 512;
const maxParameterBytes = 256 * 1024;

/** True for the class that claims without a class get. */
export function isDefaultStorageClass({ metadata }: StorageClassType): boolean {
  const annotations = metadata?.annotations ?? {};
  return (
    annotations['storageclass.kubernetes.io/is-default-class'] === 'true' ||
    annotations['storageclass.beta.kubernetes.io/is-default-class'] === 'true'
  );
}

const columns: readonly Column<StorageClassType>[] = [
  {
    ...nameColumn(),
    value: (object: StorageClassType) =>
      `${object.metadata?.name ?? ''}${isDefaultStorageClass(object) ? ' (default)' : ''}`,
  },
  column('Provisioner', 'string', 'Driver that makes volumes.', ({ provisioner }) => provisioner ?? ''),
  column('ReclaimPolicy', 'string', 'Policy of its volumes.', ({ reclaimPolicy }) => reclaimPolicy ?? 'Delete'),
  column(
    'VolumeBindingMode',
    'string',
    'When volumes are provisioned.',
    (object) => object.volumeBindingMode ?? 'Immediate',
  ),
  column(
    'AllowVolumeExpansion',
    'string',
    'Whether claims may grow.',
    ({ allowVolumeExpansion }) => allowVolumeExpansion ?? false,
  ),
  ageColumn,
];

/** Describes how volumes are provisioned for claims. */
export const StorageClass: KindDefinition<StorageClassType> = defineKind({
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'StorageClass',
  scope: 'Cluster',
  names: { plural: 'storageclasses', shortNames: ['sc'] },
  schema: StorageClassSchema,
  strategy: {
    generation: 'none',
    deleteReturnsObject: true,
    default(object) {
      object.reclaimPolicy ??= 'Delete';
      object.volumeBindingMode ??= 'Immediate';
    },
    validate: validateClass,
    warnings: ({ allowedTopologies = [] }) =>
      allowedTopologies.flatMap(({ matchLabelExpressions = [] }, i) =>
        matchLabelExpressions.flatMap(({ key }, j) =>
          labelWarnings(key, `allowedTopologies[${i}].matchLabelExpressions[${j}].key`),
        ),
      ),
    validateUpdate(object, old) {
      const errors = newErrors();
      if (!sameJson(object.parameters ?? {}, old.parameters ?? {})) {
        errors.push(fieldError.forbidden('parameters', 'updates to parameters are forbidden.'));
      }
      for (const field of ['provisioner', 'reclaimPolicy'] as const) {
        if (object[field] === old[field]) continue;
        errors.push(fieldError.forbidden(field, `updates to ${field} are forbidden.`));
      }
      checkUnchanged(object.volumeBindingMode, old.volumeBindingMode, 'volumeBindingMode', errors);
      return errors;
    },
  },
  columns,
});
export type StorageClass = StorageClassType;

function validateClass(object: StorageClassType): FieldError[] {
  const errors = newErrors();
  const { provisioner, parameters = {}, reclaimPolicy, volumeBindingMode, allowedTopologies = [] } = object;
  if (checkText(provisioner, 'provisioner', errors)) {
    pushInvalid(qualifiedNameErrors(provisioner.toLowerCase()), provisioner, 'provisioner', errors);
  }
  checkParameters(parameters, errors);
  checkOneOf(reclaimPolicy, ['Delete', 'Retain'], 'reclaimPolicy', errors);
  checkRequiredOneOf(volumeBindingMode, ['Immediate', 'WaitForFirstConsumer'], 'volumeBindingMode', errors);
  const seen = new Set<string>();
  allowedTopologies.forEach((term, i) => {
    const path = `allowedTopologies[${i}].matchLabelExpressions`;
    checkTerm(term, path, errors);
    const id = JSON.stringify(
      (term.matchLabelExpressions ?? []).map(({ key, values }) => [key, [...values].sort()]).sort(),
    );
    if (seen.has(id)) errors.push(fieldError.duplicate(path, ''));
    seen.add(id);
  });
  return errors;
}

function checkParameters(parameters: Record<string, string>, errors: Errors): void {
  const entries = Object.entries(parameters);
  if (entries.length > maxParameters) {
    errors.push(fieldError.tooLong('parameters', maxParameters));
    return;
  }
  let bytes = 0;
  for (const [key, value] of entries) {
    if (key === '') errors.push(fieldError.invalid('parameters', key, 'field can not be empty.'));
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (bytes > maxParameterBytes) errors.push(fieldError.tooLong('parameters', maxParameterBytes));
}

function checkTerm({ matchLabelExpressions = [] }: TopologySelectorTerm, path: string, errors: Errors): void {
  const keys = new Set<string>();
  matchLabelExpressions.forEach(({ key, values }, i) => {
    const at = `${path}[${i}]`;
    if (values.length === 0) errors.push(fieldError.required(`${at}.values`));
    const seen = new Set<string>();
    values.forEach((value, j) => {
      if (seen.has(value)) errors.push(fieldError.duplicate(`${at}.values[${j}]`, value));
      seen.add(value);
    });
    pushInvalid(qualifiedNameErrors(key), key, `${at}.key`, errors);
    if (keys.has(key)) errors.push(fieldError.duplicate(`${at}.key`, key));
    keys.add(key);
  });
}
