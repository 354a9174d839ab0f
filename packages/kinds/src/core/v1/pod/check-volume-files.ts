import { fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { checkText } from '../../../validation/checks.ts';
import { checkVolumeFilePath } from '../../../validation/paths.ts';
import type { DownwardAPIVolumeFile, KeyToPath } from '../schema/index.ts';
import { checkFieldRef, checkResourceFieldRef, volumeFieldPaths } from './check-downward-references.ts';

/** Permission bits of files, 0 to octal 0777. */
export function checkMode(mode: number | undefined, path: string, errors: Errors): void {
  if (mode !== undefined && (mode < 0 || mode > 0o777)) {
    errors.push(fieldError.invalid(path, mode, 'must be a number between 0 and 0777 (octal), both inclusive'));
  }
}

/** Validates the mapping of keys to files. */
export function checkKeyFiles(items: readonly KeyToPath[] | undefined, path: string, errors: Errors): void {
  items?.forEach((item, i) => {
    const at = `${path}[${i}]`;
    checkText(item.key, `${at}.key`, errors);
    if (checkText(item.path, `${at}.path`, errors)) checkVolumeFilePath(item.path, `${at}.path`, errors);
    checkMode(item.mode, `${at}.mode`, errors);
  });
}

/** Validates the files of a downward API volume. */
export function checkDownwardFiles(
  items: readonly DownwardAPIVolumeFile[] | undefined,
  path: string,
  errors: Errors,
): void {
  items?.forEach((item, i) => {
    const at = `${path}[${i}]`;
    if (checkText(item.path, `${at}.path`, errors)) checkVolumeFilePath(item.path, `${at}.path`, errors);
    if (item.fieldRef) {
      checkFieldRef(item.fieldRef, volumeFieldPaths, `${at}.fieldRef`, errors);
      if (item.resourceFieldRef) {
        errors.push(
          fieldError.invalid(at, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously'),
        );
      }
    } else if (item.resourceFieldRef) {
      checkResourceFieldRef(item.resourceFieldRef, true, `${at}.resourceFieldRef`, errors);
    } else errors.push(fieldError.required(at, 'one of fieldRef and resourceFieldRef is required'));
    checkMode(item.mode, `${at}.mode`, errors);
  });
}
