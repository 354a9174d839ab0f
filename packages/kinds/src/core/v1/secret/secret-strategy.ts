import { type Strategy, statusErrors } from '@keelson/core';
import { checkUnchanged } from '../../../validation/checks.ts';
import { checkImmutableData } from '../../../validation/data-maps.ts';
import { newErrors } from '../../../validation/errors.ts';
import type { Secret } from '../schema/index.ts';
import { tokenSecretType, validateSecret } from './validate-secret.ts';

/** Behaviour of secrets: plain text is taken in and never given out, the type stays. */
export const secretStrategy: Strategy<Secret> = {
  default(secret) {
    secret.type ||= 'Opaque';
    mergeStringData(secret);
  },
  validate: validateSecret,
  validateUpdate(secret, old) {
    const errors = newErrors();
    checkUnchanged(secret.type, old.type, 'type', errors);
    checkImmutableData(secret, old, errors);
    return errors;
  },
  export(secret, exact) {
    if (secret.type !== tokenSecretType || exact) return;
    throw statusErrors.badRequest('secrets of service account tokens cannot be exported');
  },
};

/** Plain text wins over the encoded value under the same key. */
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
