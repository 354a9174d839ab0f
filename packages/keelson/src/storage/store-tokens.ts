import {
  type Clock,
  type ContinueTokens,
  createContinueTokens,
  type ListPosition,
  StorageError,
  StorageErrorCode,
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
