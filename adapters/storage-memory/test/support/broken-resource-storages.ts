import { isStorageError } from '@keelson/core';
import type {
  ResourceStorage,
  ResourceStorages,
  ResourceWatch,
  StoredList,
  StoredObject,
  WatchEvent,
} from '@keelson/core/internal';

type Methods = Partial<ResourceStorage>;

/** Changes the events of a correct watch. */
interface WatchFault {
  readonly events?: (events: readonly WatchEvent[], counter: { count: number }) => readonly WatchEvent[];
  readonly over?: (watch: ResourceWatch) => Partial<ResourceWatch>;
}

function brokenWatch(inner: ResourceWatch, { events = (same) => same, over }: WatchFault): ResourceWatch {
  const counter = { count: 0 };
  const watch: ResourceWatch = {
    read: (max) => events(inner.read(max), counter),
    onReadable: (callback) => inner.onReadable(callback),
    get revision() {
      return inner.revision;
    },
    requestBookmark: () => inner.requestBookmark(),
    close: () => inner.close(),
    [Symbol.asyncIterator]: () => inner[Symbol.asyncIterator](),
  };
  return Object.defineProperties(watch, Object.getOwnPropertyDescriptors(over?.(inner) ?? {}));
}

const onWatch =
  (fault: WatchFault) =>
  (inner: ResourceStorage): Methods => ({
    watch: async (prefix, options) => brokenWatch(await inner.watch(prefix, options), fault),
  });

const onList =
  (change: (list: StoredList) => Partial<StoredList>) =>
  (inner: ResourceStorage): Methods => ({
    async list(prefix, options) {
      const list = await inner.list(prefix, options);
      const same: StoredList = {
        revision: list.revision,
        count: list.count,
        objects: () => list.objects(),
        ready: list.ready,
        chunks: (form, separator) => list.chunks(form, separator),
        ...(list.next ? { next: list.next } : {}),
        ...(list.remaining === undefined ? {} : { remaining: list.remaining }),
      };
      return { ...same, ...change(list) };
    },
  });

const withObject = (event: WatchEvent, object: StoredObject): WatchEvent => ({
  type: event.type,
  object,
  encoded: (form) => form.encode(event.type, object),
});

/** A wrong implementation and the group of cases that must detect it. */
export interface BrokenStorages {
  readonly fault: string;
  readonly group: RegExp;
  readonly make: (inner: ResourceStorage) => Methods;
}

export const brokenStorages: readonly BrokenStorages[] = [
  {
    fault: 'answers consistent gets from any state',
    group: /^(get|model)\./,
    make: (inner) => ({ get: (key, at, options) => inner.get(key, at.at === 'latest' ? { at: 'any' } : at, options) }),
  },
  {
    fault: 'answers consistent lists from any state',
    group: /^(list|model)\./,
    make: (inner) => ({
      list: (prefix, options) =>
        inner.list(prefix, options.at.at === 'latest' && !options.resume ? { ...options, at: { at: 'any' } } : options),
    }),
  },
  {
    fault: 'answers exact lists with the latest state',
    group: /^list\./,
    make: (inner) => ({
      list: (prefix, options) =>
        inner.list(prefix, options.at.at === 'exact' ? { ...options, at: { at: 'latest' } } : options),
    }),
  },
  {
    fault: 'continues chunked lists at the latest state',
    group: /^page\./,
    make: (inner) => ({
      list: (prefix, options) =>
        inner.list(
          prefix,
          options.resume ? { ...options, resume: { ...options.resume, revision: 'latest' } } : options,
        ),
    }),
  },
  {
    fault: 'repeats the last object of a page on the next',
    group: /^page\./,
    make: onList((list) => (list.next ? { next: { ...list.next, after: list.next.after.slice(0, -1) } } : {})),
  },
  {
    fault: 'ignores the limit',
    group: /^page\./,
    make: (inner) => ({ list: (prefix, options) => inner.list(prefix, { ...options, limit: 0 }) }),
  },
  {
    fault: 'mixes namespaces with a common name prefix',
    group: /^list\./,
    make: (inner) => ({ list: (prefix, options) => inner.list(prefix.slice(0, -1), options) }),
  },
  {
    fault: 'reports the revision of the newest object as that of the list',
    group: /^list\./,
    make: onList((list) => ({ revision: Math.max(1, ...[...list.objects()].map((object) => object.revision)) })),
  },
  {
    fault: 'omits the commas between chunks',
    group: /^list\./,
    make: onList((list) => ({
      *chunks(form) {
        for (const object of list.objects()) yield object.encoded(form);
      },
    })),
  },
  {
    fault: 'repeats a write with an unknown outcome',
    group: /^create\./,
    make: (inner) => ({
      async create(key, json, options) {
        try {
          return await inner.create(key, json, options);
        } catch (error) {
          if (isStorageError(error, 'OutcomeUnknown')) return inner.create(key, json, options);
          throw error;
        }
      },
    }),
  },
  {
    fault: 'writes the result of an older state without a precondition',
    group: /^update\./,
    make: (inner) => ({
      async update(key, decide) {
        const decision = await decide(await inner.get(key, { at: 'any' }));
        return inner.update(key, () => decision);
      },
    }),
  },
  {
    fault: 'writes unchanged objects',
    group: /^update\./,
    make: (inner) => ({
      async update(key, decide, options) {
        const outcome = await inner.update(key, decide, options);
        return outcome.outcome === 'unchanged' ? { ...outcome, outcome: 'updated' } : outcome;
      },
    }),
  },
  {
    fault: 'answers deletions with the revision before them',
    group: /^delete\./,
    make: (inner) => ({
      async update(key, decide, options) {
        const outcome = await inner.update(key, decide, options);
        if (outcome.outcome !== 'deleted') return outcome;
        return { ...outcome, object: outcome.object.restamped(outcome.object.revision - 1) };
      },
    }),
  },
  {
    fault: 'loses some events',
    group: /^watch\./,
    make: onWatch({ events: (events, counter) => events.filter(() => ++counter.count % 40 !== 0) }),
  },
  {
    fault: 'repeats some events',
    group: /^watch\./,
    make: onWatch({
      events: (events, counter) => events.flatMap((event) => (++counter.count % 3 === 0 ? [event, event] : [event])),
    }),
  },
  {
    fault: 'returns the newest events of a read first',
    group: /^watch\./,
    make: onWatch({ events: (events) => [...events].reverse() }),
  },
  {
    fault: 'sends no event when an object no longer matches',
    group: /^watch\./,
    make: (inner) => ({
      watch: async (prefix, options) =>
        brokenWatch(await inner.watch(prefix, options), {
          events: (events) => (options.predicate.everything ? events : events.filter(({ type }) => type !== 'DELETED')),
        }),
    }),
  },
  {
    fault: 'returns deleted objects with an old resourceVersion',
    group: /^watch\./,
    make: onWatch({
      events: (events) =>
        events.map((event) =>
          event.type === 'DELETED' ? withObject(event, event.object.restamped(event.object.revision - 1)) : event,
        ),
    }),
  },
  {
    fault: 'begins to follow changes shortly after the state that it returns',
    group: /^state\./,
    make: (inner) => ({
      async watch(prefix, options) {
        const watch = await inner.watch(prefix, options);
        if (options.from.start !== 'state') return watch;
        let skip = true;
        return brokenWatch(watch, {
          events: (events) =>
            events.filter(({ type }) => {
              if (type !== 'MODIFIED' || !skip) return true;
              skip = false;
              return false;
            }),
        });
      },
    }),
  },
  {
    fault: 'claims the newest revision before the state has been read',
    group: /^state\./,
    make: (inner) => ({
      async watch(prefix, options) {
        const revision = await inner.currentRevision();
        return brokenWatch(await inner.watch(prefix, options), { over: () => ({ revision }) });
      },
    }),
  },
  {
    fault: 'never marks the end of the initial state',
    group: /^state\./,
    make: onWatch({ events: (events) => events.filter((event) => event.initialEventsEnd !== true) }),
  },
  {
    fault: 'puts bookmarks before the events they cover',
    group: /^bookmark\./,
    make: onWatch({
      events: (events, counter) => {
        const [first] = events;
        if (first === undefined || first.type === 'BOOKMARK' || ++counter.count % 5 !== 0) return events;
        const ahead = first.object.restamped(first.object.revision + 1);
        return [{ type: 'BOOKMARK', object: ahead, encoded: () => Buffer.alloc(0) }, ...events];
      },
    }),
  },
  {
    fault: 'notifies its reader repeatedly',
    group: /^watch\./,
    make: onWatch({
      over: (watch) => ({
        onReadable: (callback) => {
          watch.onReadable(() => {
            callback();
            setImmediate(callback);
          });
        },
      }),
    }),
  },
  {
    fault: 'continues after it was closed',
    group: /^watch\./,
    make: onWatch({ over: () => ({ close: () => {} }) }),
  },
];

/** Storages of which every one has the fault. */
export function breakStorages(inner: ResourceStorages, make: BrokenStorages['make']): ResourceStorages {
  return {
    forKind(kind) {
      const sound = inner.forKind(kind);
      const same: ResourceStorage = {
        create: (key, json, options) => sound.create(key, json, options),
        get: (key, at, options) => sound.get(key, at, options),
        list: (prefix, options) => sound.list(prefix, options),
        watch: (prefix, options) => sound.watch(prefix, options),
        update: (key, decide, options) => sound.update(key, decide, options),
        currentRevision: () => sound.currentRevision(),
      };
      return { ...same, ...make(sound) };
    },
    ready: () => inner.ready(),
    start: () => inner.start(),
    stop: () => inner.stop(),
  };
}
