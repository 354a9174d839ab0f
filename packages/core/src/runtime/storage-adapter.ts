import type { Schema } from '../kind/schema.ts';
import type { BindingModule } from './tokens.ts';

/**
 * What a storage adapter package default-exports. The module binds `StoreToken`; nothing registers itself by being
 * imported. `options` are checked against the schema before `module` is called.
 */
export interface StorageAdapter<O = unknown> {
  /** The word in `--storage` URLs, e.g. `lmdb`. */
  readonly name: string;
  readonly optionsSchema: Schema<O>;
  /**
   * Translates the part of a `--storage` URL after `name:` into options; throws an Error with a sentence for people. `scheme` is
   * the word before the colon, for adapters that answer to several.
   */
  readonly parseUrl: (url: string, scheme?: string) => O;
  readonly module: (options: O) => BindingModule;
}
