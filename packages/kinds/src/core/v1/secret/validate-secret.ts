import { type FieldError, fieldError } from '@keelson/core';
import { base64Bytes } from '../../../validation/base64.ts';
import { checkDataKeys, type Errors, maxDataBytes, newErrors } from '../../../validation/checks.ts';
import type { Secret } from '../schema/index.ts';

/** Type of secrets with tokens of service accounts. */
export const tokenSecretType = 'kubernetes.io/service-account-token';
const accountAnnotation = 'kubernetes.io/service-account.name';

/** Validates keys, total size and the fields that the type requires. */
export function validateSecret(secret: Secret): FieldError[] {
  const errors = newErrors();
  checkDataKeys(secret.data, 'data', errors);
  let bytes = 0;
  for (const value of Object.values(secret.data ?? {})) bytes += base64Bytes(value);
  if (bytes > maxDataBytes) errors.push(fieldError.tooLong('data', maxDataBytes));
  checkType(secret, errors);
  return errors;
}

function checkType(secret: Secret, errors: Errors): void {
  const has = (key: string) => secret.data !== undefined && Object.hasOwn(secret.data, key);
  const need = (...keys: string[]) => {
    for (const key of keys) if (!has(key)) errors.push(fieldError.required(`data[${key}]`));
  };
  switch (secret.type) {
    case tokenSecretType:
      if (!secret.metadata?.annotations?.[accountAnnotation]) {
        errors.push(fieldError.required(`metadata.annotations[${accountAnnotation}]`));
      }
      break;
    case 'kubernetes.io/dockercfg':
      checkDockerConfig(secret, '.dockercfg', errors);
      break;
    case 'kubernetes.io/dockerconfigjson':
      checkDockerConfig(secret, '.dockerconfigjson', errors);
      break;
    case 'kubernetes.io/basic-auth':
      if (!has('username') && !has('password')) need('username', 'password');
      break;
    case 'kubernetes.io/ssh-auth':
      need('ssh-privatekey');
      break;
    case 'kubernetes.io/tls':
      need('tls.crt', 'tls.key');
      break;
  }
}

function checkDockerConfig(secret: Secret, key: string, errors: Errors): void {
  const encoded = secret.data && Object.hasOwn(secret.data, key) ? secret.data[key] : undefined;
  if (encoded === undefined) {
    errors.push(fieldError.required(`data[${key}]`));
    return;
  }
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  if (!isJson(text))
    errors.push(fieldError.invalid(`data[${key}]`, '<secret contents redacted>', 'must be valid JSON'));
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
