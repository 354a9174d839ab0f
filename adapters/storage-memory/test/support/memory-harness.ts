import type { OpenedStore, StoreHarness } from '@keelson/conformance';
import { FakeClock } from '@keelson/core/runtime';
import type { Store } from '@keelson/core/storage-adapter';
import { MemoryStore } from '../../src/index.ts';

export interface OpenedMemory extends OpenedStore {
  readonly clock: FakeClock;
}

/** A harness over memory; `wrap` may wrap the store, `check` runs after its last use. */
export function memoryHarness(
  name: string,
  wrap: (store: MemoryStore) => { readonly store: Store; readonly check?: () => void } = (store) => ({ store }),
): StoreHarness<OpenedMemory> {
  return {
    name,
    capabilities: new MemoryStore().capabilities,
    async open() {
      const clock = new FakeClock();
      const memory = new MemoryStore({ clock });
      const { store, check } = wrap(memory);
      await store.ready();
      return {
        store,
        clock,
        async dispose() {
          await memory.close();
          check?.();
        },
      };
    },
    async advance(opened, ms) {
      opened.clock.advance(ms);
    },
  };
}
