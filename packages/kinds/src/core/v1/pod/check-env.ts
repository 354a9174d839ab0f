import { configMapKeyErrors, envVarNameErrors, fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { checkRequiredName, checkText, pushInvalid } from '../../../validation/checks.ts';
import type { EnvFromSource, EnvVar, EnvVarSource } from '../schema/index.ts';
import { checkFieldRef, checkResourceFieldRef, envFieldPaths } from './check-downward-references.ts';

/** Environment variables of a container. */
export function checkEnv(env: readonly EnvVar[] | undefined, path: string, errors: Errors): void {
  env?.forEach((variable, i) => {
    const at = `${path}[${i}]`;
    if (checkText(variable.name, `${at}.name`, errors)) {
      pushInvalid(envVarNameErrors(variable.name), variable.name, `${at}.name`, errors);
    }
    if (!variable.valueFrom) return;
    if (variable.value) {
      errors.push(fieldError.invalid(`${at}.valueFrom`, '', 'may not be specified when `value` is not empty'));
    }
    checkValueFrom(variable.valueFrom, `${at}.valueFrom`, errors);
  });
}

function checkValueFrom(source: EnvVarSource, path: string, errors: Errors): void {
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = source;
  const count = [fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef].filter(Boolean).length;
  if (count === 0) {
    const detail =
      'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`';
    errors.push(fieldError.invalid(path, '', detail));
  } else if (count > 1) {
    errors.push(fieldError.invalid(path, '', 'may not have more than one field specified at a time'));
  }
  if (fieldRef) checkFieldRef(fieldRef, envFieldPaths, `${path}.fieldRef`, errors);
  if (resourceFieldRef) checkResourceFieldRef(resourceFieldRef, false, `${path}.resourceFieldRef`, errors);
  if (configMapKeyRef) checkKeyRef(configMapKeyRef, `${path}.configMapKeyRef`, errors);
  if (secretKeyRef) checkKeyRef(secretKeyRef, `${path}.secretKeyRef`, errors);
  if (fileKeyRef) {
    checkRequiredName(fileKeyRef.volumeName, 'dns1123Label', `${path}.fileKeyRef.volumeName`, errors);
    checkText(fileKeyRef.path, `${path}.fileKeyRef.path`, errors);
    checkText(fileKeyRef.key, `${path}.fileKeyRef.key`, errors);
  }
}

function checkKeyRef(ref: { name?: string; key?: string }, path: string, errors: Errors): void {
  checkText(ref.name, `${path}.name`, errors);
  if (checkText(ref.key, `${path}.key`, errors))
    pushInvalid(configMapKeyErrors(ref.key), ref.key, `${path}.key`, errors);
}

/** Validates ConfigMaps and Secrets that are the source of environment variables. */
export function checkEnvFrom(sources: readonly EnvFromSource[] | undefined, path: string, errors: Errors): void {
  sources?.forEach((source, i) => {
    const at = `${path}[${i}]`;
    if (source.prefix) pushInvalid(envVarNameErrors(source.prefix), source.prefix, `${at}.prefix`, errors);
    const { configMapRef, secretRef } = source;
    if (configMapRef) checkRequiredName(configMapRef.name, 'dns1123Subdomain', `${at}.configMapRef.name`, errors);
    if (secretRef) checkRequiredName(secretRef.name, 'dns1123Subdomain', `${at}.secretRef.name`, errors);
    if (!configMapRef && !secretRef) {
      errors.push(fieldError.invalid(at, '', 'must specify one of: `configMapRef` or `secretRef`'));
    } else if (configMapRef && secretRef) {
      errors.push(fieldError.invalid(at, '', 'may not have more than one field specified at a time'));
    }
  });
}
