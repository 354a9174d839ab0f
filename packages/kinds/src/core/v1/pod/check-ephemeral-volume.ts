import { fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { checkLabelSelector, checkOneOf } from '../../../validation/checks.ts';
import { compareAmounts } from '../../../validation/quantities.ts';
import type { EphemeralVolumeSource } from '../schema/index.ts';

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];

/** Validates the template of a claim that is created for a pod. */
export function checkEphemeralVolume(source: EphemeralVolumeSource, path: string, errors: Errors): void {
  const template = source.volumeClaimTemplate;
  const at = `${path}.volumeClaimTemplate`;
  if (!template) {
    errors.push(fieldError.required(at));
    return;
  }
  const { spec } = template;
  if (!spec?.accessModes?.length) {
    errors.push(fieldError.required(`${at}.spec.accessModes`, 'at least 1 access mode is required'));
  }
  spec?.accessModes?.forEach((mode, i) => {
    checkOneOf(mode, accessModes, `${at}.spec.accessModes[${i}]`, errors);
  });
  const storage = spec?.resources?.requests?.['storage'];
  if (storage === undefined) errors.push(fieldError.required(`${at}.spec.resources[storage]`));
  else if ((compareAmounts(storage, '0') ?? 1) <= 0) {
    errors.push(fieldError.invalid(`${at}.spec.resources.requests[storage]`, storage, 'must be greater than zero'));
  }
  checkOneOf(spec?.volumeMode, ['Block', 'Filesystem'], `${at}.spec.volumeMode`, errors);
  checkLabelSelector(spec?.selector, `${at}.spec.selector`, errors);
}
