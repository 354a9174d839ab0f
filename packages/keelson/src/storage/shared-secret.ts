import { randomBytes } from 'node:crypto';
import { isStorageError, StorageError, StorageErrorCode, type Store } from '@keelson/core';

/** Keys of kinds begin with a slash, so this one belongs to nobody, and no list or watch of objects meets it. */
export const secretKey = '!keelson/continue-token-secret';
const secretBytes = 32;
const attempts = 5;

/**
 * The secret that all servers of one store sign continue tokens with: kept in the store, made by the first server that
 * needs it. Who can read the store's bytes can read every object, so it is no less safe there.
 */
export async function sharedSecret(store: Store): Promise<Buffer> {
  for (let attempt = 1; ; attempt += 1) {
    const { entry } = await store.get(secretKey);
    if (entry !== undefined) return checked(Buffer.from(entry.value));
    try {
      const value = randomBytes(secretBytes);
      // The store owns the bytes from here on.
      const result = await store.write({ op: 'put', key: secretKey, value: Buffer.from(value), expect: 0 });
      if (result.ok) return value;
    } catch (error) {
      // Whether it was written shows when it is read again.
      if (!isStorageError(error, StorageErrorCode.OutcomeUnknown) || attempt >= attempts) throw error;
    }
  }
}

function checked(secret: Buffer): Buffer {
  if (secret.byteLength >= 16) return secret;
  throw new StorageError(StorageErrorCode.Corrupt, `the record ${secretKey} holds no secret`, { key: secretKey });
}
