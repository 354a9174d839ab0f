import type { Key, Store } from '@keelson/core/storage-adapter';
import { Twin } from './twin.ts';

/** Siblings with a common beginning, and keys whose order differs between encodings. */
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
