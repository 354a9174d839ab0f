import type { Store } from '@keelson/core';
import type { OpenedStore, StoreCase, StoreHarness } from './harness.ts';

export interface RunOptions {
  readonly seed: number;
  /** Default 30 s; a case that takes longer has failed. */
  readonly timeoutMs?: number;
  readonly log?: (message: string) => void;
}

/**
 * Opens a store, runs one case on it and disposes of it. Rejects when the case does; the message tells case and seed.
 */
export async function runStoreCase<O extends OpenedStore>(
  harness: StoreHarness<O>,
  storeCase: StoreCase,
  options: RunOptions,
): Promise<void> {
  const live = new Set<O>();
  const open = async (opening: Promise<O>) => {
    const opened = await opening;
    live.add(opened);
    return opened;
  };
  const timeoutMs = options.timeoutMs ?? 30_000;
  let timer: NodeJS.Timeout | undefined;
  try {
    let opened = await open(harness.open());
    const replace = async (hook: ((opened: O) => Promise<O>) | undefined): Promise<Store> => {
      if (hook === undefined) throw new Error('the harness has no such hook; the case must require it');
      live.delete(opened);
      opened = await open(hook.call(harness, opened));
      return opened.store;
    };
    const run = storeCase.run({
      store: opened.store,
      capabilities: harness.capabilities,
      seed: options.seed,
      another: async () => (await open(harness.open())).store,
      advance: async (ms) => harness.advance?.(opened, ms),
      reopen: () => replace(harness.reopen),
      killAndReopen: () => replace(harness.killAndReopen),
      log: options.log ?? (() => {}),
    });
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`not finished within ${timeoutMs} ms`)), timeoutMs);
    });
    await Promise.race([run, late]);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new Error(`${harness.name}: ${storeCase.id}: ${text} (KEELSON_SEED=${options.seed})`, { cause: error });
  } finally {
    clearTimeout(timer);
    for (const opened of live) await opened.dispose();
  }
}
