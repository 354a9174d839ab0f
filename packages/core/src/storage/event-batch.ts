import type { EventRepresentation, WatchEvent } from './resource-storage.ts';

const joined = new WeakMap<readonly WatchEvent[], Map<string, Buffer>>();

/**
 * The frames of events that were read together, as one buffer. Watchers at the same place of the same history read the
 * same array, so the joined buffer is made once for all of them; it lives as long as the array.
 */
export function encodeEvents(events: readonly WatchEvent[], representation: EventRepresentation): Buffer {
  const [first] = events;
  if (first === undefined) return Buffer.alloc(0);
  if (events.length === 1) return first.encoded(representation);
  let forms = joined.get(events);
  if (forms === undefined) {
    forms = new Map();
    joined.set(events, forms);
  }
  let buffer = forms.get(representation.id);
  if (buffer === undefined) {
    buffer = Buffer.concat(events.map((event) => event.encoded(representation)));
    forms.set(representation.id, buffer);
  }
  return buffer;
}
