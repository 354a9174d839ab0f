import type { Key, Store } from '@keelson/core';
import { Twin } from './twin.ts';

/** Siblings that begin alike, and keys whose order depends on how it is taken. */
export const trafficKeys: readonly Key[] = ['/a', '/a/b', '/ab', '/b', '/é', '/\u{1f600}'];

/** Creates, updates and deletes over {@link trafficKeys}, always the same. */
export async function busy(store: Store, rounds: number): Promise<Twin> {
  const twin = await Twin.of(store);
  for (let i = 0; i < rounds; i++) {
    const key = trafficKeys[i % trafficKeys.length] as string;
    if (i % 7 === 5 && twin.model.current(key) !== undefined) await twin.remove(key);
    else await twin.put(key, `v${i}`);
  }
  return twin;
}
