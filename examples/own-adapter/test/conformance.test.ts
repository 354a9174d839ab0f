import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type OpenedStore, registerStoreConformance, type StoreHarness } from '@keelson/conformance';
import { FakeClock } from '@keelson/core/runtime';
import test from 'ava';
import { LinesStore } from '../src/lines-store.ts';

interface OpenedLines extends OpenedStore {
  readonly store: LinesStore;
  readonly clock: FakeClock;
  readonly folder: string;
  readonly file: string;
}

async function openAt(folder: string, file: string, clock: FakeClock): Promise<OpenedLines> {
  const store = new LinesStore({ path: join(folder, file), clock });
  await store.ready();
  const dispose = async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { store, clock, folder, file, dispose };
}

const harness: StoreHarness<OpenedLines> = {
  name: 'lines',
  capabilities: new LinesStore({ path: '' }).capabilities,
  open: () => openAt(mkdtempSync(join(tmpdir(), 'keelson-lines-')), 'store.jsonl', new FakeClock()),
  async advance({ store, clock }, ms) {
    clock.advance(ms);
    await store.settled();
  },
  async reopen({ store, folder, file, clock }) {
    await store.close();
    return openAt(folder, file, clock);
  },
  async killAndReopen({ store, folder, file, clock }) {
    // The state on disk right after the last acknowledgement, without closing anything.
    const left = `left-${file}`;
    copyFileSync(join(folder, file), join(folder, left));
    const again = await openAt(folder, left, clock);
    await store.close();
    return again;
  },
};

// Serial: each case waits for the disk.
registerStoreConformance(test.serial, harness);
