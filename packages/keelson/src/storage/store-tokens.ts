import { randomBytes } from 'node:crypto';
import {
  type Clock,
  type ContinueTokens,
  createContinueTokens,
  isStorageError,
  type ListPosition,
  StorageError,
  StorageErrorCode,
  type Store,
  type StoreIdentity,
} from '@keelson/core';

export interface StoreTokensOptions {
  readonly clock: Clock;
  /** What else the servers of a store must have in common to take each other's tokens. */
  readonly configuration: string;
  readonly lifeMs?: number | undefined;
}

/**
 * The continue tokens of one store. They are bound to its identity and epoch: a page cannot be continued on another
 * store, nor on this one after its history was rewound.
 */
export class StoreTokens implements ContinueTokens {
  readonly #options: StoreTokensOptions;
  #secret: Uint8Array | undefined;
  #tokens: ContinueTokens | undefined;

  constructor(options: StoreTokensOptions) {
    this.#options = options;
  }

  /** Once the store is open. */
  begin(secret: Uint8Array, identity: StoreIdentity): void {
    this.#secret = secret;
    this.rebind(identity);
  }

  /** The store has another epoch: tokens issued before are void. */
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
