import type { Schema } from '../kind/schema.ts';
import { type BindingModule, token } from '../runtime/tokens.ts';
import type { Store } from './store.ts';

/** What an adapter binds its store to. */
export const StoreToken = token<Store>('keelson.Store');

/**
 * The default export of a storage adapter package. Importing the package has no effect.
 *
 * Call order: `parseUrl` when the store is configured by a URL, validation of the options against `optionsSchema`,
 * `module`, then `Store.ready` on the store that the module binds to `StoreToken`. Neither `parseUrl` nor `module` does
 * input or output. See docs/how-to/write-a-storage-adapter.md.
 */
export interface StorageAdapter<O = unknown> {
  /** The scheme of `--storage` URLs, e.g. `lmdb`. */
  readonly name: string;
  readonly optionsSchema: Schema<O>;
  /**
   * Parses the part of a `--storage` URL after the colon. Throws an Error whose message is shown to the user. `scheme`
   * is the part before the colon, for adapters that accept several.
   */
  readonly parseUrl: (url: string, scheme?: string) => O;
  readonly module: (options: O) => BindingModule;
}
