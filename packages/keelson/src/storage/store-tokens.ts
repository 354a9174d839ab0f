import { randomBytes } from 'node:crypto';
import { isStorageError, StorageError, StorageErrorCode } from '@keelson/core';
import {
  type ContinueTokens,
  createContinueTokens,
  damageOf,
  encryptionKeyOf,
  type ListPosition,
  tokenSecretKey,
} from '@keelson/core/internal';
import type { Clock, Logger } from '@keelson/core/runtime';
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

const secretBytes = 32;
const attempts = 5;

/**
 * The secret with which all servers of one store sign continue tokens. It is stored in the store, encrypted when the
 * store encrypts anything, and created by the first server. A secret that cannot be decrypted is replaced. Tokens that
 * the previous secret signed are then invalid, and their lists begin again; tokens live for minutes only.
 */
export async function sharedSecret(store: Store, logger: Logger): Promise<Buffer> {
  for (let attempt = 1; ; attempt += 1) {
    const { entry } = await store.get(tokenSecretKey);
    const isReadable = entry !== undefined && !entry.damaged && encryptionKeyOf(entry.value) === undefined;
    if (isReadable) return checked(Buffer.from(entry.value));
    try {
      const value = randomBytes(secretBytes);
      // The store takes ownership of the bytes.
      const op = {
        op: 'put',
        key: tokenSecretKey,
        value: Buffer.from(value),
        expect: entry?.modRevision ?? 0,
      } as const;
      const result = await store.write(op);
      if (!result.ok) continue;
      if (entry !== undefined) logger.warn('the secret of continue tokens was replaced', { reason: damageOf(entry) });
      return value;
    } catch (error) {
      // The next read shows whether the secret was written.
      if (!isStorageError(error, StorageErrorCode.OutcomeUnknown) || attempt >= attempts) throw error;
    }
  }
}

function checked(secret: Buffer): Buffer {
  if (secret.byteLength >= 16) return secret;
  const message = `the record ${tokenSecretKey} contains no secret`;
  throw new StorageError(StorageErrorCode.Corrupt, message, { key: tokenSecretKey });
}
