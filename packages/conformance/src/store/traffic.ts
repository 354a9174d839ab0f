import type { Key, Store } from '@keelson/core/storage-adapter';
import { Twin } from './twin.ts';

/** Keys of the traffic: a parent, siblings with a common prefix, and keys with characters outside of ASCII. */
export const trafficKeys: readonly Key[] = ['/a', '/a/b', '/ab', '/b', '/é', '/\u{1f600}'];

/** A fixed sequence of creates, updates and deletes of {@link trafficKeys}. */
export async function busy(store: Store, rounds: number): Promise<Twin> {
  const twin = await Twin.of(store);
  for (let i = 0; i < rounds; i++) {
    const key = trafficKeys[i % trafficKeys.length] as string;
    if (i % 7 === 5 && twin.model.current(key) !== undefined) await twin.remove(key);
    else await twin.put(key, `v${i}`);
  }
  return twin;
}
