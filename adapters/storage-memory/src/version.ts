import type { Change, Entry, Key, Revision } from '@keelson/core';

/**
 * One change of one key. The versions of a key form a chain to older ones, within the retained history; the newest is
 * in the index.
 */
export class Version {
  readonly key: Key;
  /** `key` in the form whose code-unit order is key order. */
  readonly ordered: string;
  readonly revision: Revision;
  /** The state from this revision on; undefined after a delete. */
  readonly entry: Entry | undefined;
  /** The version before; removed when this revision leaves history, since no read can reach it then. */
  before: Version | undefined;
  /** Monotonic time of the change, in milliseconds. */
  readonly at: number;
  #plain: Change | undefined;
  #full: Change | undefined;

  constructor(
    key: Key,
    ordered: string,
    revision: Revision,
    entry: Entry | undefined,
    before: Version | undefined,
    at: number,
  ) {
    this.key = key;
    this.ordered = ordered;
    this.revision = revision;
    this.entry = entry;
    this.before = before;
    this.at = at;
  }

  /** The change for watchers; one object is shared by all of them. */
  change(prevValue: boolean): Change {
    const prev = this.before?.entry;
    if (!prevValue || prev === undefined) {
      this.#plain ??= { type: this.#type(), revision: this.revision, key: this.key, entry: this.entry };
      return this.#plain;
    }
    this.#full ??= { type: this.#type(), revision: this.revision, key: this.key, entry: this.entry, prev };
    return this.#full;
  }

  /** Drops all references that only history needs. */
  leaveHistory(): void {
    this.before = undefined;
    this.#plain = undefined;
    this.#full = undefined;
  }

  #type(): Change['type'] {
    if (this.entry === undefined) return 'delete';
    return this.before?.entry === undefined ? 'create' : 'update';
  }
}
