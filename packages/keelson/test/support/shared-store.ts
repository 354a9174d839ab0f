import type { Store } from '@keelson/core/storage-adapter';
import { MemoryStore } from '@keelson/storage-memory';
import type { ExecutionContext } from 'ava';

/** A store that several planes use; it stays open when one of them closes. */
export function sharedStore(t: ExecutionContext): Store {
  const store = new MemoryStore({});
  t.teardown(() => store.close());
  return new Proxy<Store>(store, {
    get(target, property) {
      if (property === 'close') return async () => {};
      const value = Reflect.get(target, property, target) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
