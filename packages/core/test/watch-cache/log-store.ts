import { StorageError } from '../../src/index.ts';
import {
  type Change,
  type ChangeLog,
  type Entry,
  type OrderedRange,
  type Store,
  WatchHub,
} from '../../src/storage-adapter.ts';

/** A store in memory whose history is one list of changes, and whose stream can be held back or broken by the test. */
export class LogStore implements ChangeLog {
  readonly capabilities = { denseRevisions: true, oneChangePerRevision: true };
  readonly changes: Change[] = [];
  readonly hub = new WatchHub(this);
  compacted = 0;
  /** Number of calls of `list`. */
  lists = 0;
  /** Number of calls of `watch`. */
  watches = 0;
  /** Runs after a list has taken its state and before it returns. */
  duringList: () => Promise<unknown> = async () => {};
  /** The revision up to which streams deliver changes; undefined: all. */
  deliverTo: number | undefined;

  get revision(): number {
    return this.changes.length;
  }

  get head(): number {
    return this.deliverTo ?? this.revision;
  }

  read(after: number, range: OrderedRange) {
    if (after < this.compacted) throw new StorageError('Compacted', 'compacted', { revision: this.compacted });
    const frontier = this.head;
    return { changes: this.changes.slice(after, frontier).filter(({ key }) => range.covers(key)), frontier };
  }

  current(key: string): Entry | undefined {
    return this.changes.findLast((change) => change.key === key)?.entry;
  }

  put(key: string, value: Uint8Array): number {
    const revision = this.revision + 1;
    const prev = this.current(key);
    const entry = { key, value, modRevision: revision, createRevision: prev?.createRevision ?? revision };
    this.changes.push({ type: prev ? 'update' : 'create', revision, key, entry, prev });
    this.hub.wake();
    return revision;
  }

  /** What the storages use of a store. */
  get store(): Store {
    const log = this;
    const calls = {
      capabilities: this.capabilities,
      identity: async () => ({ storeId: 's', epoch: 'e' }),
      currentRevision: async () => log.revision,
      get: async (key: string) => ({ entry: log.current(key), revision: log.revision }),
      async *list({ start }: { start: string }) {
        log.lists++;
        const entries = new Map<string, Entry>();
        for (const { key, entry } of log.changes) {
          if (!key.startsWith(start)) continue;
          if (entry === undefined) entries.delete(key);
          else entries.set(key, entry);
        }
        const { revision } = log;
        await log.duringList();
        const sorted = [...entries.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
        yield { entries: sorted, revision, more: false };
      },
      watch: async (range: { start: string; end: string }, options: { after: number; prevValue?: boolean }) => {
        log.watches++;
        return log.hub.open(range, options, log.compacted);
      },
      write: async (op: { op: 'put' | 'delete'; key: string; value: Uint8Array; expect: number }) => {
        const current = log.current(op.key);
        if ((current?.modRevision ?? 0) !== op.expect) return { ok: false, current, revision: log.revision };
        if (op.op === 'put') {
          const revision = log.put(op.key, op.value);
          return { ok: true, revision, createRevision: log.current(op.key)?.createRevision ?? revision };
        }
        const revision = log.revision + 1;
        log.changes.push({ type: 'delete', revision, key: op.key, entry: undefined, prev: current });
        log.hub.wake();
        return { ok: true, revision, createRevision: current?.createRevision ?? 0 };
      },
    };
    return calls as unknown as Store;
  }
}
