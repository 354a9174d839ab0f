import { fieldError } from '@keelson/core';
import { checkLabelSelector, checkName, checkText, type Errors } from '../../../validation/checks.ts';
import { compareAmounts } from '../../../validation/quantities.ts';
import type { PersistentVolumeClaimSpec } from '../schema/index.ts';

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];
const volumeModes = ['Block', 'Filesystem'];

/** Validates the spec of a claim: of a claim itself, and of the templates in pods and stateful sets. */
export function checkClaimSpec(spec: PersistentVolumeClaimSpec, path: string, errors: Errors): void {
  checkAccessModes(spec.accessModes ?? [], `${path}.accessModes`, errors);
  checkLabelSelector(spec.selector, `${path}.selector`, errors);
  const storage = spec.resources?.requests?.['storage'];
  if (storage === undefined) errors.push(fieldError.required(`${path}.resources[storage]`));
  else if ((compareAmounts(storage, '0') ?? 1) <= 0) {
    errors.push(fieldError.invalid(`${path}.resources[storage]`, storage, 'must be greater than zero'));
  }
  checkName(spec.storageClassName, 'dns1123Subdomain', `${path}.storageClassName`, errors);
  if (spec.volumeMode !== undefined && !volumeModes.includes(spec.volumeMode)) {
    errors.push(fieldError.notSupported(`${path}.volumeMode`, spec.volumeMode, volumeModes));
  }
  checkDataSources(spec, path, errors);
  checkName(spec.volumeAttributesClassName, 'dns1123Subdomain', `${path}.volumeAttributesClassName`, errors);
}

function checkAccessModes(modes: readonly string[], path: string, errors: Errors): void {
  if (modes.length === 0) errors.push(fieldError.required(path, 'at least 1 access mode is required'));
  for (const mode of modes)
    if (!accessModes.includes(mode)) errors.push(fieldError.notSupported(path, mode, accessModes));
  const supported = new Set(modes.filter((mode) => accessModes.includes(mode)));
  if (supported.has('ReadWriteOncePod') && supported.size > 1) {
    errors.push(fieldError.forbidden(path, 'may not use ReadWriteOncePod with other access modes'));
  }
}

interface Source {
  readonly apiGroup?: string;
  readonly kind?: string;
  readonly name?: string;
}

function checkDataSources(
  { dataSource, dataSourceRef }: PersistentVolumeClaimSpec,
  path: string,
  errors: Errors,
): void {
  if (dataSource) checkSource(dataSource, `${path}.dataSource`, errors);
  if (dataSourceRef) {
    checkSource(dataSourceRef, `${path}.dataSourceRef`, errors);
    checkName(dataSourceRef.namespace, 'dns1123Label', `${path}.dataSourceRef.namespace`, errors);
  }
  if (!dataSource || !dataSourceRef) return;
  if (dataSourceRef.namespace) {
    const detail = 'may not be specified when dataSourceRef.namespace is specified';
    errors.push(fieldError.invalid(path, `${path}.dataSource`, detail));
  } else if (
    dataSource.apiGroup !== dataSourceRef.apiGroup ||
    dataSource.kind !== dataSourceRef.kind ||
    dataSource.name !== dataSourceRef.name
  ) {
    errors.push(fieldError.invalid(path, `${path}.dataSource`, 'must match dataSourceRef'));
  }
}

function checkSource({ apiGroup, kind, name }: Source, path: string, errors: Errors): void {
  checkText(name, `${path}.name`, errors);
  checkText(kind, `${path}.kind`, errors);
  if (!apiGroup && kind !== 'PersistentVolumeClaim') {
    const detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
    errors.push(fieldError.invalid(path, kind ?? '', detail));
  }
  checkName(apiGroup, 'dns1123Subdomain', `${path}.apiGroup`, errors);
}
