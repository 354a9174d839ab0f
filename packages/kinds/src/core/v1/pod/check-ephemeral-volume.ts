import { fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import type { EphemeralVolumeSource } from '../schema/index.ts';
import { checkClaimSpec } from '../volume-claim/check-claim-spec.ts';

/** Validates the template of a claim that is created for a pod. */
export function checkEphemeralVolume(source: EphemeralVolumeSource, path: string, errors: Errors): void {
  const template = source.volumeClaimTemplate;
  if (template) checkClaimSpec(template.spec ?? {}, `${path}.volumeClaimTemplate.spec`, errors);
  else errors.push(fieldError.required(`${path}.volumeClaimTemplate`));
}
