import type {
  KeyRange,
  ReadOptions,
  Revision,
  Store,
  StoreCapabilities,
  StoreIdentity,
  WatchBatch,
  WatchStream,
  WriteOp,
  WriteResult,
} from '@keelson/core/storage-adapter';

/** Forwards all calls to another store, and injects the faults that a case requests. */
export class ControlledStore implements Store {
  readonly inner: Store;
  readonly capabilities: StoreCapabilities;
  /** Number of calls by method. */
  readonly calls = { write: 0, get: 0, list: 0, currentRevision: 0, watch: 0 };
  /** Called before a write reaches the store; may throw. */
  beforeWrite: ((op: WriteOp) => void | Promise<void>) | undefined;
  /** Called when a write has succeeded; may throw, which simulates a lost answer. */
  afterWrite: ((op: WriteOp) => void | Promise<void>) | undefined;
  /** Called before a list reaches the store. */
  beforeList: (() => void | Promise<void>) | undefined;
  /** Called when `currentRevision` has its result, before it is returned. */
  afterProbe: (() => void | Promise<void>) | undefined;
  /** Called before a watch is opened; may throw. */
  beforeWatch: (() => void) | undefined;
  /** Replaces the identity, as after a restore. */
  identityNow: StoreIdentity | undefined;
  readonly #streams = new Set<ControlledStream>();
  #gate: Promise<void> | undefined;
  /** Returns whether the gate holds a stream back. */
  #holds: (stream: ControlledStream) => boolean = () => true;
  #openGate: (() => void) | undefined;

  constructor(inner: Store) {
    this.inner = inner;
    this.capabilities = inner.capabilities;
  }

  /**
   * Holds back batches that streams have not delivered yet: of all streams, of those that are open now, or of those
   * that open later.
   */
  holdStreams(which: 'all' | 'open' | 'later' = 'all'): void {
    this.#gate ??= new Promise((resolve) => {
      this.#openGate = resolve;
    });
    const open = new Set(this.#streams);
    this.#holds = which === 'all' ? () => true : (stream) => open.has(stream) === (which === 'open');
  }

  releaseStreams(): void {
    this.#openGate?.();
    this.#gate = undefined;
  }

  /** Fails open streams, all or those that are held back; they do not deliver pending batches. */
  breakStreams(error: Error, which: 'all' | 'held' = 'all'): void {
    for (const stream of this.#streams) if (which === 'all' || this.#holds(stream)) stream.break(error);
  }

  get openStreams(): number {
    return this.#streams.size;
  }

  async identity(): Promise<StoreIdentity> {
    return this.identityNow ?? this.inner.identity();
  }

  async write(
    op: WriteOp,
    options?: { readonly signal?: AbortSignal; readonly timeoutMs?: number },
  ): Promise<WriteResult> {
    this.calls.write++;
    await this.beforeWrite?.(op);
    const result = await this.inner.write(op, options);
    if (result.ok) await this.afterWrite?.(op);
    return result;
  }

  get(key: string, options?: ReadOptions & { readonly revision?: Revision }) {
    this.calls.get++;
    return this.inner.get(key, options);
  }

  async *list(
    range: KeyRange,
    options?: ReadOptions & { readonly revision?: Revision; readonly limit?: number; readonly keysOnly?: boolean },
  ) {
    this.calls.list++;
    await this.beforeList?.();
    yield* this.inner.list(range, options);
  }

  count(range: KeyRange, options?: ReadOptions & { readonly revision?: Revision }) {
    return this.inner.count(range, options);
  }

  async currentRevision(options?: ReadOptions): Promise<Revision> {
    this.calls.currentRevision++;
    const revision = await this.inner.currentRevision(options);
    await this.afterProbe?.();
    return revision;
  }

  async watch(
    range: KeyRange,
    options: { readonly after: Revision; readonly prevValue?: boolean; readonly signal?: AbortSignal },
  ): Promise<WatchStream> {
    this.calls.watch++;
    this.beforeWatch?.();
    const gate = () => (this.#holds(stream) ? this.#gate : undefined);
    const stream: ControlledStream = new ControlledStream(await this.inner.watch(range, options), gate);
    this.#streams.add(stream);
    stream.onEnd = () => this.#streams.delete(stream);
    return stream;
  }

  compact(upTo: Revision): Promise<void> {
    return this.inner.compact(upTo);
  }

  compactedRevision(): Promise<Revision> {
    return this.inner.compactedRevision();
  }

  ready(): Promise<void> {
    return this.inner.ready();
  }

  async close(): Promise<void> {
    this.releaseStreams();
    await this.inner.close();
  }
}

class ControlledStream implements WatchStream {
  readonly #inner: WatchStream;
  readonly #gate: () => Promise<void> | undefined;
  readonly #broken: Promise<never>;
  #error: Error | undefined;
  #reject: (error: Error) => void = () => {};
  #frontier: Revision;
  onEnd: () => void = () => {};

  constructor(inner: WatchStream, gate: () => Promise<void> | undefined) {
    this.#inner = inner;
    this.#gate = gate;
    this.#frontier = inner.frontier;
    this.#broken = new Promise((_, reject) => {
      this.#reject = reject;
    });
    this.#broken.catch(() => {});
  }

  get frontier(): Revision {
    return this.#frontier;
  }

  break(error: Error): void {
    this.#error = error;
    this.#reject(error);
  }

  advanceTo(revision: Revision, options?: { readonly signal?: AbortSignal }): Promise<void> {
    return this.#inner.advanceTo(revision, options);
  }

  async close(): Promise<void> {
    this.onEnd();
    await this.#inner.close();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchBatch, void, undefined> {
    try {
      const batches = this.#inner[Symbol.asyncIterator]();
      for (;;) {
        const next = await Promise.race([batches.next(), this.#broken]);
        const gate = this.#gate();
        if (gate !== undefined) await Promise.race([gate, this.#broken]);
        if (this.#error !== undefined) throw this.#error;
        if (next.done === true) return;
        this.#frontier = next.value.frontier;
        yield next.value;
      }
    } finally {
      this.onEnd();
      await this.#inner.close();
    }
  }
}
