/** Called in the order of changes. `kept` is the result of `keep` for an object, `key` that of `keyOf`. */
export interface InformerHandlers<K> {
  readonly added?: (kept: K, key: string) => void;
  readonly updated?: (kept: K, before: K, key: string) => void;
  readonly deleted?: (kept: K, key: string) => void;
  /**
   * A new list replaced changes that were not observed. Objects that are not remembered may have been created, changed
   * or deleted.
   */
  readonly relisted?: () => void;
}
