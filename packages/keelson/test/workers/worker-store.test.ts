import { MessageChannel } from 'node:worker_threads';
import { type OpenedStore, registerStoreConformance, type StoreHarness } from '@keelson/conformance';
import { FakeClock } from '@keelson/core/runtime';
import { MemoryStore } from '@keelson/storage-memory';
import test from 'ava';
import { SharedStore } from '../../src/workers/shared-store.ts';
import { WorkerStore } from '../../src/workers/worker-store.ts';

interface Opened extends OpenedStore {
  readonly clock: FakeClock;
}

const harness: StoreHarness<Opened> = {
  name: 'memory through a worker',
  capabilities: new MemoryStore().capabilities,
  async open() {
    const clock = new FakeClock();
    const memory = new SharedStore(new MemoryStore({ clock }));
    const { port1, port2 } = new MessageChannel();
    const store = new WorkerStore({ port: port2, ...memory.serve(port1) });
    await store.ready();
    return {
      store,
      clock,
      async dispose() {
        await store.close();
        await memory.close();
      },
    };
  },
  async advance(opened, ms) {
    opened.clock.advance(ms);
  },
};

registerStoreConformance(test.serial, harness);
