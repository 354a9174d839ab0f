import { fieldError } from '@keelson/core';
import { checkRequiredName, checkUnique } from '../../../validation/checks.ts';
import type { Errors } from '../../../validation/errors.ts';
import type { Volume } from '../schema/index.ts';
import { checkVolumeSource } from './check-volume-source.ts';
import { sourcesOf } from './volume-sources.ts';

/** Volumes of a pod: unique names, exactly one source each, and that one complete. */
export function checkVolumes(volumes: readonly Volume[] | undefined, path: string, errors: Errors): void {
  const names = new Set<string>();
  volumes?.forEach((volume, i) => {
    const at = `${path}[${i}]`;
    if (checkRequiredName(volume.name, 'dns1123Label', `${at}.name`, errors)) {
      checkUnique(volume.name, names, `${at}.name`, errors);
    }
    const [first, ...others] = sourcesOf(volume);
    if (first === undefined) errors.push(fieldError.required(at, 'must specify a volume type'));
    else checkVolumeSource(volume, first, `${at}.${first}`, errors);
    for (const other of others) {
      errors.push(fieldError.forbidden(`${at}.${other}`, 'may not specify more than 1 volume type'));
    }
  });
}
