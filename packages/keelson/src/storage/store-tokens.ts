import { randomBytes } from 'node:crypto';
import { isStorageError, StorageError, StorageErrorCode } from '@keelson/core';
import { type ContinueTokens, createContinueTokens, type ListPosition } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import type { Store, StoreIdentity } from '@keelson/core/storage-adapter';

export interface StoreTokensOptions {
  readonly clock: Clock;
  /** Further state that servers must share to accept each other's tokens. */
  readonly configuration: string;
  readonly lifeMs?: number | undefined;
}

/**
 * The continue tokens of one store. They are bound to its identity and epoch: a list cannot be continued on another
 * store, nor after the history of this one was rewound.
 */
export class StoreTokens implements ContinueTokens {
  readonly #options: StoreTokensOptions;
  #secret: Uint8Array | undefined;
  #tokens: ContinueTokens | undefined;

  constructor(options: StoreTokensOptions) {
    this.#options = options;
  }

  /** To be called when the store is open. */
  begin(secret: Uint8Array, identity: StoreIdentity): void {
    this.#secret = secret;
    this.rebind(identity);
  }

  /** Invalidates tokens of earlier epochs. */
  rebind({ storeId, epoch }: StoreIdentity): void {
    if (this.#secret === undefined) return;
    const { clock, lifeMs, configuration } = this.#options;
    this.#tokens = createContinueTokens({
      secret: this.#secret,
      fingerprint: `${storeId}/${epoch}/${configuration}`,
      clock,
      ...(lifeMs === undefined ? {} : { lifeMs }),
    });
  }

  encode(position: ListPosition, binding: string): string {
    return this.#bound().encode(position, binding);
  }

  decode(text: string, binding: string): ListPosition {
    return this.#bound().decode(text, binding);
  }

  #bound(): ContinueTokens {
    if (this.#tokens !== undefined) return this.#tokens;
    throw new StorageError(StorageErrorCode.Unavailable, 'the store is not open yet');
  }
}

/** Keys of kinds begin with a slash, so no list or watch of objects contains this key. */
export const secretKey = '!keelson/continue-token-secret';
const secretBytes = 32;
const attempts = 5;

/**
 * The secret with which all servers of one store sign continue tokens. It is stored in the store and created by the
 * first server. A reader of the store's bytes can read every object anyway.
 */
export async function sharedSecret(store: Store): Promise<Buffer> {
  for (let attempt = 1; ; attempt += 1) {
    const { entry } = await store.get(secretKey);
    if (entry !== undefined) return checked(Buffer.from(entry.value));
    try {
      const value = randomBytes(secretBytes);
      // The store takes ownership of the bytes.
      const result = await store.write({ op: 'put', key: secretKey, value: Buffer.from(value), expect: 0 });
      if (result.ok) return value;
    } catch (error) {
      // The next read shows whether the secret was written.
      if (!isStorageError(error, StorageErrorCode.OutcomeUnknown) || attempt >= attempts) throw error;
    }
  }
}

function checked(secret: Buffer): Buffer {
  if (secret.byteLength >= 16) return secret;
  throw new StorageError(StorageErrorCode.Corrupt, `the record ${secretKey} contains no secret`, { key: secretKey });
}
