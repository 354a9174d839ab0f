import type { Service, Store } from '@keelson/core';

/** Opens the store before everything that uses it and closes it after. */
export function storeService(store: Store): Service {
  return { name: 'store', start: () => store.ready(), stop: () => store.close() };
}
