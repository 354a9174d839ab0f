import { StorageError, StorageErrorCode } from '@keelson/core';
import { encryptionKeyOf } from '@keelson/core/internal';
import type {
  Change,
  Entry,
  Key,
  ListChunk,
  Revision,
  Store,
  StoreCapabilities,
  WatchBatch,
  WatchStream,
  WriteOp,
} from '@keelson/core/storage-adapter';
import type { EncryptionConfig, ValueProviders } from './encryption-config.ts';
import { maxOverheadBytes } from './value-cipher.ts';

/** What an encrypted store reports. */
export interface ValueObserver {
  sealed(): void;
  opened(ok: boolean): void;
}

/**
 * A store whose values of some kinds are encrypted in the wrapped store. Its callers, such as the watch cache, see
 * plain values. A value that cannot be decrypted becomes a damaged entry that states the reason.
 */
export class EncryptedStore implements Store {
  readonly passOver?: (seen: Revision) => Promise<void>;
  readonly capabilities: StoreCapabilities;
  readonly #store: Store;
  readonly #observer: ValueObserver;
  readonly #streams = new Set<OpenedStream>();
  readonly #ownWrites = new OwnWrites();
  #config: EncryptionConfig;
  /** Whether a caller has received an entry that another configuration may be able to decrypt. */
  #unreadable = false;

  constructor(store: Store, config: EncryptionConfig, observer: ValueObserver) {
    this.#store = store;
    this.#config = config;
    this.#observer = observer;
    this.capabilities = {
      ...store.capabilities,
      sharedValues: false,
      maxValueBytes: store.capabilities.maxValueBytes - maxOverheadBytes,
    };
    if (store.passOver !== undefined) this.passOver = (seen) => this.#passOver(seen);
  }

  get failed(): Promise<StorageError> | undefined {
    return this.#store.failed;
  }

  get config(): EncryptionConfig {
    return this.#config;
  }

  /** The wrapped store, with the values as they are stored. */
  get stored(): Store {
    return this.#store;
  }

  /**
   * Uses another configuration. When values could not be decrypted so far, the watches end as after a restore, so that
   * caches read them again.
   */
  reconfigure(config: EncryptionConfig): void {
    this.#config = config;
    this.#ownWrites.clear();
    if (!this.#unreadable) return;
    this.#unreadable = false;
    const error = new StorageError(StorageErrorCode.EpochChanged, 'the encryption configuration was changed');
    for (const stream of [...this.#streams]) stream.end(error);
  }

  identity: Store['identity'] = () => this.#store.identity();
  ready: Store['ready'] = (options) => this.#store.ready(options);
  close: Store['close'] = () => this.#store.close();
  count: Store['count'] = (range, options) => this.#store.count(range, options);
  currentRevision: Store['currentRevision'] = (options) => this.#store.currentRevision(options);
  compact: Store['compact'] = (upTo) => this.#store.compact(upTo);
  compactedRevision: Store['compactedRevision'] = () => this.#store.compactedRevision();

  write: Store['write'] = async (op, options) => {
    const result = await this.#store.write(this.#sealed(op), options);
    if (!result.ok) this.#ownWrites.remove(op.key);
    return result.ok || result.current === undefined ? result : { ...result, current: this.open(result.current) };
  };

  get: Store['get'] = async (key, options) => {
    const found = await this.#store.get(key, options);
    return found.entry === undefined ? found : { ...found, entry: this.open(found.entry) };
  };

  list: Store['list'] = (range, options) => {
    const chunks = this.#store.list(range, options);
    return options?.keysOnly ? chunks : this.#opened(chunks);
  };

  watch: Store['watch'] = async (range, options) => {
    const stream = new OpenedStream(
      await this.#store.watch(range, options),
      (entry) => this.#ownWrites.take(entry) ?? this.open(entry),
      () => this.#streams.delete(stream),
    );
    this.#streams.add(stream);
    return stream;
  };

  /** The entry with its plain value. The same entry when its value is not encrypted, and need not be. */
  open(entry: Entry): Entry {
    if (entry.damaged) return entry;
    const { key, value } = entry;
    const providers = this.#config.of(key);
    const name = encryptionKeyOf(value);
    if (name === undefined && (providers === undefined || providers.identity)) return entry;
    const opened = opens(key, value, providers, name);
    this.#observer.opened(typeof opened !== 'string');
    if (typeof opened !== 'string') return { ...entry, value: opened };
    this.#unreadable = true;
    return { ...entry, value: nothing, damaged: true, damage: opened };
  }

  #sealed(op: WriteOp): WriteOp {
    if (op.op !== 'put') return op;
    const { maxValueBytes } = this.capabilities;
    if (op.value.length > maxValueBytes) {
      throw new StorageError(
        StorageErrorCode.TooLarge,
        `a value has at most ${maxValueBytes} bytes, got ${op.value.length}`,
        { key: op.key },
      );
    }
    const writer = this.#config.of(op.key)?.writer;
    if (writer === undefined) return op;
    this.#observer.sealed();
    const sealed = writer.seal(op.key, op.value);
    if (this.#streams.size > 0) this.#ownWrites.add(op.key, sealed, op.value);
    return { ...op, value: sealed };
  }

  async *#opened(chunks: AsyncIterable<ListChunk>): AsyncGenerator<ListChunk, void, undefined> {
    for await (const chunk of chunks) yield { ...chunk, entries: chunk.entries.map((entry) => this.open(entry)) };
  }

  async #passOver(seen: Revision): Promise<void> {
    await this.#store.passOver?.(seen);
  }
}

/** Bounds of the writes that are kept until a watch delivers them. */
const maxOwnWrites = 1024;
const maxOwnBytes = 4 * 1024 * 1024;

/**
 * The latest writes of this process with their plain values, so that the watch of the cache need not decrypt them: that
 * costs as much as to encrypt them. An entry with the same bytes under the same key has the same plain value.
 */
class OwnWrites {
  readonly #writes = new Map<Key, { readonly sealed: Buffer; readonly value: Uint8Array }>();
  #bytes = 0;

  add(key: Key, sealed: Buffer, value: Uint8Array): void {
    this.remove(key);
    this.#writes.set(key, { sealed, value });
    this.#bytes += sealed.length + value.length;
    for (const oldest of this.#writes.keys()) {
      if (this.#writes.size <= maxOwnWrites && this.#bytes <= maxOwnBytes) return;
      this.remove(oldest);
    }
  }

  remove(key: Key): void {
    const write = this.#writes.get(key);
    if (write === undefined) return;
    this.#writes.delete(key);
    this.#bytes -= write.sealed.length + write.value.length;
  }

  /**
   * Returns the entry with its plain value and forgets the write of the entry; undefined when this process did not
   * write the entry recently.
   */
  take(entry: Entry): Entry | undefined {
    const write = this.#writes.get(entry.key);
    if (write === undefined || entry.damaged || !write.sealed.equals(entry.value)) return undefined;
    this.remove(entry.key);
    return { ...entry, value: write.value };
  }

  clear(): void {
    this.#writes.clear();
    this.#bytes = 0;
  }
}

const nothing = new Uint8Array();

/** The plain value, or why it cannot be read. */
function opens(
  key: Key,
  value: Uint8Array,
  providers: ValueProviders | undefined,
  name: string | undefined,
): Uint8Array | string {
  if (name === undefined) return 'is not encrypted, and the providers of its resource do not include identity';
  const shown = JSON.stringify(name);
  if (providers === undefined)
    return `is encrypted with the key ${shown}, and --encryption-provider-config has no entry for its resource`;
  const reader = providers.readers.get(name);
  if (reader === undefined)
    return `is encrypted with the key ${shown}, which --encryption-provider-config does not contain for its resource`;
  return reader.open(key, value) ?? `cannot be decrypted with the key ${shown}: its bytes or the secret were changed`;
}

/** A stream with plain values. */
class OpenedStream implements WatchStream {
  readonly #stream: WatchStream;
  readonly #open: (entry: Entry) => Entry;
  readonly #onEnd: () => void;
  #failure: StorageError | undefined;

  constructor(stream: WatchStream, open: (entry: Entry) => Entry, onEnd: () => void) {
    this.#stream = stream;
    this.#open = open;
    this.#onEnd = onEnd;
  }

  get frontier(): Revision {
    return this.#stream.frontier;
  }

  advanceTo: WatchStream['advanceTo'] = (revision, options) => this.#stream.advanceTo(revision, options);

  async close(): Promise<void> {
    this.#onEnd();
    await this.#stream.close();
  }

  /** Ends the stream with an error. */
  end(error: StorageError): void {
    this.#failure = error;
    this.#onEnd();
    this.#stream.close().catch(() => {});
  }

  [Symbol.asyncIterator](): AsyncIterator<WatchBatch> {
    const batches = this.#stream[Symbol.asyncIterator]();
    const end = (): IteratorResult<WatchBatch> => {
      this.#onEnd();
      if (this.#failure !== undefined) throw this.#failure;
      return { done: true, value: undefined };
    };
    return {
      next: async () => {
        if (this.#failure !== undefined) return end();
        try {
          const result = await batches.next();
          if (result.done || this.#failure !== undefined) return end();
          return { done: false, value: this.#opened(result.value) };
        } catch (error) {
          this.#onEnd();
          throw this.#failure ?? error;
        }
      },
      return: async () => {
        this.#onEnd();
        await batches.return?.();
        return { done: true, value: undefined };
      },
    };
  }

  #opened(batch: WatchBatch): WatchBatch {
    return { ...batch, changes: batch.changes.map((change) => this.#openedChange(change)) };
  }

  #openedChange(change: Change): Change {
    const entry = change.entry && this.#open(change.entry);
    if (change.prev === undefined) return entry === change.entry ? change : { ...change, entry };
    return { ...change, entry, prev: this.#open(change.prev) };
  }
}
