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
      if (!secret.data?.['ssh-privatekey']) errors.push(fieldError.required('data[ssh-privatekey]'));
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
  const problem = objectProblem(text);
  if (problem !== undefined) errors.push(fieldError.invalid(`data[${key}]`, '<secret contents redacted>', problem));
}

/** Why a text is no JSON object, as far as possible in the words of the JSON library of Go; null is an object there. */
function objectProblem(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && !Array.isArray(value)) return undefined;
    const kind = typeof value === 'boolean' ? 'bool' : Array.isArray(value) ? 'array' : typeof value;
    return `json: cannot unmarshal ${kind} into Go value of type map[string]interface {}`;
  } catch {
    return text.trim() === '' ? 'unexpected end of JSON input' : 'must be valid JSON';
  }
}
