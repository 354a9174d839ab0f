import { type Strategy, statusErrors } from '@keelson/core';
import { checkImmutableData, checkUnchanged, newErrors } from '../../../validation/checks.ts';
import type { Secret } from '../schema/index.ts';
import { tlsWarnings } from './tls-warnings.ts';
import { tokenSecretType, validateSecret } from './validate-secret.ts';

/** Strategy of secrets: `stringData` is write-only, the type is immutable. */
export const secretStrategy: Strategy<Secret> = {
  default(secret) {
    secret.type ||= 'Opaque';
    mergeStringData(secret);
  },
  validate: validateSecret,
  warnings: tlsWarnings,
  validateUpdate(secret, old) {
    const errors = newErrors();
    checkUnchanged(secret.type, old.type, 'type', errors);
    checkImmutableData(secret, old, errors);
    return errors;
  },
  export(secret, exact) {
    if (secret.type !== tokenSecretType || exact) return;
    throw statusErrors.badRequest('service account tokens cannot be exported');
  },
};

/** Moves `stringData` to `data`. It overrides the encoded value of the same key. */
function mergeStringData(secret: Secret): void {
  const { stringData } = secret;
  if (!stringData) return;
  delete secret.stringData;
  const entries = Object.entries(stringData);
  if (entries.length === 0) return;
  const data = { ...secret.data };
  for (const [key, text] of entries) {
    Object.defineProperty(data, key, {
      value: Buffer.from(text, 'utf8').toString('base64'),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  secret.data = data;
}
