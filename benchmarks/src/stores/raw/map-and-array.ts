import type { Raw } from '../ground.ts';
import { keepInFlight } from '../in-flight.ts';

/**
 * The least that a store in memory does: `Map.set` and a push onto the history. A read is `Map.get`, a page a slice of
 * a sorted array.
 */
export function mapAndArray(value: Buffer): Raw {
  let written = 0;
  let objects = new Map<string, Buffer>();
  let history: { readonly key: string; readonly revision: number }[] = [];
  const readable = new Map<string, Buffer>();
  let sorted: { readonly key: string; readonly value: Buffer }[] = [];
  const position = new Map<string, number>();
  return {
    what: 'Map.set and array push',
    write: async (inFlight, durationMs) => {
      objects = new Map();
      history = [];
      return keepInFlight(inFlight, durationMs, async () => {
        const key = `/raw/${written++}`;
        objects.set(key, value);
        history.push({ key, revision: written });
      });
    },
    fill: async (keys) => {
      sorted = [...keys].sort().map((key) => ({ key, value }));
      for (const [index, { key }] of sorted.entries()) {
        readable.set(key, value);
        position.set(key, index);
      }
    },
    get: async (key) => readable.get(key),
    page: async (start) => {
      const first = position.get(start) ?? 0;
      return sorted.slice(first, first + 500);
    },
    close: async () => {},
  };
}
