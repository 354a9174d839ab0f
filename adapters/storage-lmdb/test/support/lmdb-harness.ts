import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { OpenedStore, StoreHarness } from '@keelson/conformance';
import { FakeClock, type LogFields, type Logger } from '@keelson/core/runtime';
import type { Store } from '@keelson/core/storage-adapter';
import { memoryFolder } from '@keelson/test-support';
import { LmdbStore } from '../../src/index.ts';

export interface OpenedLmdb extends OpenedStore {
  readonly lmdb: LmdbStore;
  readonly clock: FakeClock;
  readonly path: string;
}

type Wrap = (store: LmdbStore) => { readonly store: Store; readonly check?: () => void };

/** A directory that `remove` deletes. It survives the kill of a process. */
export function temporaryDirectory(): { readonly path: string; readonly remove: () => void } {
  const path = mkdtempSync(join(memoryFolder(), 'keelson-lmdb-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** A harness over LMDB in directories of its own; `wrap` may wrap the store. */
export function lmdbHarness(name: string, wrap: Wrap = (store) => ({ store })): StoreHarness<OpenedLmdb> {
  const openAt = async (path: string, clock: FakeClock, remove: () => void): Promise<OpenedLmdb> => {
    const lmdb = new LmdbStore({ path, clock });
    await lmdb.ready();
    const { store, check } = wrap(lmdb);
    const dispose = async () => {
      await lmdb.close();
      remove();
      check?.();
    };
    return { store, lmdb, clock, path, dispose };
  };
  return {
    name,
    capabilities: new LmdbStore({ path: '/nowhere' }).capabilities,
    open() {
      const { path, remove } = temporaryDirectory();
      return openAt(join(path, 'data'), new FakeClock(), remove);
    },
    async advance({ clock, lmdb }, ms) {
      clock.advance(ms);
      await lmdb.settled();
    },
    async reopen({ lmdb, path, clock }) {
      await lmdb.close();
      return openAt(path, clock, () => rmSync(join(path, '..'), { recursive: true, force: true }));
    },
    async killAndReopen({ lmdb, path, clock }) {
      // The state on disk right after the last acknowledgement, without closing anything.
      const left = join(path, '..', 'left');
      mkdirSync(left);
      copyFileSync(join(path, 'data.mdb'), join(left, 'data.mdb'));
      const again = await openAt(left, clock, () => rmSync(join(path, '..'), { recursive: true, force: true }));
      await lmdb.close();
      return again;
    },
  };
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields | undefined;
}

/** A logger that keeps its lines. */
export class RecordingLogger implements Logger {
  readonly lines: LogLine[] = [];
  debug = this.#line('debug');
  info = this.#line('info');
  warn = this.#line('warn');
  error = this.#line('error');
  child = () => this;

  #line(level: string) {
    return (message: string, fields?: LogFields) => {
      this.lines.push({ level, message, fields });
    };
  }
}
