/** Called in the order of changes. `kept` is what `keep` made of an object, `key` is `keyOf` it. */
export interface InformerHandlers<K> {
  readonly added?: (kept: K, key: string) => void;
  readonly updated?: (kept: K, before: K, key: string) => void;
  readonly deleted?: (kept: K, key: string) => void;
  /**
   * A new list stood in for changes that nobody saw: of objects that are not remembered, some may have come, changed
   * and gone.
   */
  readonly relisted?: () => void;
}
