import { createInProcessClient } from '@keelson/client';
import { type ClientCase, clientCases, clientSuiteKinds, runClientCase } from '@keelson/conformance';
import type { ApiClient, ClientWatchEvent, KubeObject, ResourceClient, Stored, WatchOptions } from '@keelson/core';
import { systemClock } from '@keelson/core/runtime';
import { MemoryStore } from '@keelson/storage-memory';
import test from 'ava';
import { createControlPlane } from 'keelson';

type Client = ResourceClient<KubeObject>;
type Event = ClientWatchEvent<KubeObject>;

/** The fault of a client; all other calls are forwarded to a correct one. */
type Fault = (good: Client) => Partial<Client>;

function withFault(good: Client, fault: Fault): Client {
  const wrong = fault(good);
  return new Proxy(good, {
    get(target, name) {
      if (name === 'namespace') return (namespace: string) => withFault(target.namespace(namespace), fault);
      if (name in wrong) return Reflect.get(wrong, name);
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

function mappedWatch(good: Client, map: (event: Event, at: number) => Event[]): Partial<Client> {
  return {
    watch: (options?: WatchOptions) => ({
      async *[Symbol.asyncIterator]() {
        let at = 0;
        for await (const event of good.watch(options)) yield* map(event, at++);
      },
    }),
  };
}

const without =
  (...names: string[]) =>
  <T extends object>(options: T | undefined): T =>
    Object.fromEntries(Object.entries(options ?? {}).filter(([name]) => !names.includes(name))) as T;

/** Faults by the case that must detect them. */
const faults: readonly (readonly [caseId: string, what: string, fault: Fault])[] = [
  [
    'create.dry-run',
    'dry runs are executed',
    (good) => ({ create: (object, options) => good.create(object, without('dryRun')(options)) }),
  ],
  [
    'create.strict-field-validation',
    'fieldValidation is not sent',
    (good) => ({ create: (object, options) => good.create(object, without('fieldValidation')(options)) }),
  ],
  [
    'create.answers-the-stored-object',
    'the response is the sent object',
    (good) => ({
      create: async (object, options) => {
        await good.create(object, options);
        return object as Stored;
      },
    }),
  ],
  [
    'create.existing-name',
    'errors have no reason',
    (good) => ({
      create: (object, options) =>
        good.create(object, options).catch((error: Error) => {
          throw new Error(error.message);
        }),
    }),
  ],
  [
    'create.any-text',
    'texts are decoded as latin1',
    (good) => ({
      get: async (name, options) =>
        JSON.parse(Buffer.from(JSON.stringify(await good.get(name, options))).toString('latin1')) as Stored,
    }),
  ],
  [
    'read.empty-name',
    'an empty name deletes the collection',
    (good) => ({
      delete: async (name, options) =>
        name === '' ? ((await good.deleteCollection()) as never) : good.delete(name, options),
    }),
  ],
  [
    'read.names-that-look-like-paths',
    'a path is followed',
    (good) => ({
      get: (name, options) => good.get(name.split('/').at(-1) === 'a' || name.startsWith('a?') ? 'a' : name, options),
    }),
  ],
  [
    'read.version-of-the-future',
    'a future version is retried endlessly',
    (good) => ({ get: async (name, options) => good.get(name, options).catch(() => good.get(name, options)) }),
  ],
  [
    'list.label-selectors',
    'label selectors are not sent',
    (good) => ({ list: (options) => good.list(without('labelSelector')(options)) }),
  ],
  [
    'list.field-selectors',
    'field selectors are not sent',
    (good) => ({ list: (options) => good.list(without('fieldSelector')(options)) }),
  ],
  [
    'list.exact-version',
    'resourceVersionMatch is not sent',
    (good) => ({ list: (options) => good.list(without('resourceVersionMatch')(options)) }),
  ],
  [
    'list.envelope',
    'items lack their kind',
    (good) => ({
      list: async (options) => {
        const list = await good.list(options);
        return { ...list, items: list.items.map(({ kind: _kind, ...item }) => item) };
      },
    }),
  ],
  [
    'page.every-object-once',
    'the limit is not sent',
    (good) => ({ list: (options) => good.list(without('limit')(options)) }),
  ],
  ['page.one-state', 'the token is lost', (good) => ({ list: (options) => good.list(without('continue')(options)) })],
  [
    'update.stale-version',
    'the version is not sent',
    (good) => ({
      update: ({ metadata: { resourceVersion: _version, ...metadata } = {}, ...object }, options) =>
        good.update({ ...object, metadata }, options),
    }),
  ],
  [
    'update.dry-run',
    'dry runs of updates are executed',
    (good) => ({ update: (object, options) => good.update(object, without('dryRun')(options)) }),
  ],
  [
    'patch.strategic',
    'strategic patches are sent as merge patches',
    (good) => ({
      patch: (name, type, patch, options) => good.patch(name, type === 'strategic' ? 'merge' : type, patch, options),
    }),
  ],
  [
    'patch.merge',
    'null is omitted from patches',
    (good) => ({
      patch: (name, type, patch, options) =>
        good.patch(
          name,
          type,
          JSON.parse(JSON.stringify(patch, (_key, value: unknown) => value ?? undefined)),
          options,
        ),
    }),
  ],
  [
    'delete.preconditions',
    'preconditions are not sent',
    (good) => ({ delete: (name, options) => good.delete(name, without('preconditions')(options)) }),
  ],
  [
    'delete.propagation',
    'the policy is not sent',
    (good) => ({ delete: (name, options) => good.delete(name, without('propagationPolicy')(options)) }),
  ],
  [
    'delete.collection',
    'selectors of a collection are not sent',
    (good) => ({ deleteCollection: (options) => good.deleteCollection(without('labelSelector')(options)) }),
  ],
  [
    'delete.dry-run',
    'dry runs of deletions are executed',
    (good) => ({ deleteCollection: (options) => good.deleteCollection(without('dryRun')(options)) }),
  ],
  [
    'subresource.status',
    'the status is written to the object',
    (good) => ({ updateSubresource: (_name, _subresource, body) => good.update(body) }),
  ],
  [
    'subresource.action',
    'dry runs of actions are executed',
    (good) => ({ createSubresource: (name, subresource, body) => good.createSubresource(name, subresource, body) }),
  ],
  [
    'watch.from-a-version',
    'the version of a watch is not sent',
    (good) => ({ watch: (options) => good.watch(without('resourceVersion')(options)) }),
  ],
  [
    'watch.label-selector',
    'events are filtered by the object of the event',
    (good) => ({
      watch: (options) => ({
        async *[Symbol.asyncIterator]() {
          for await (const event of good.watch(without('labelSelector')(options))) {
            if (options?.labelSelector === undefined || event.object.metadata?.labels?.['on'] === 'yes') yield event;
          }
        },
      }),
    }),
  ],
  [
    'watch.resumes-without-gap',
    'every third event is lost',
    (good) => mappedWatch(good, (event, at) => (at % 3 === 2 ? [] : [event])),
  ],
  [
    'watch.resumes-without-gap',
    'an event is delivered twice',
    (good) => mappedWatch(good, (event, at) => (at === 3 ? [event, event] : [event])),
  ],
  [
    'watch.deletions-have-a-version',
    'deletions have the previous version',
    (good) =>
      mappedWatch(good, (event) =>
        event.type === 'DELETED'
          ? [{ ...event, object: { ...event.object, metadata: { ...event.object.metadata, resourceVersion: '1' } } }]
          : [event],
      ),
  ],
  [
    'watch.initial-events',
    'bookmarks are dropped',
    (good) => mappedWatch(good, (event) => (event.type === 'BOOKMARK' ? [] : [event])),
  ],
  [
    'watch.history-gone',
    'a watch whose history has expired begins at the current version',
    (good) => ({
      watch: (options) => ({
        async *[Symbol.asyncIterator]() {
          try {
            yield* good.watch(options);
          } catch {
            yield* good.watch();
          }
        },
      }),
    }),
  ],
  [
    'watch.time-out',
    'the time-out of a watch is an error',
    (good) => ({
      watch: (options) => ({
        async *[Symbol.asyncIterator]() {
          yield* good.watch(options);
          throw new Error('timed out');
        },
      }),
    }),
  ],
  [
    'watch.abort',
    'an abort is an error',
    (good) => ({
      watch: (options) => ({
        async *[Symbol.asyncIterator]() {
          yield* good.watch(options);
          options?.signal?.throwIfAborted();
        },
      }),
    }),
  ],
  [
    'watch.leaving-while-waiting',
    'leaving waits for the next event',
    (good) => ({
      watch: (options) => ({
        async *[Symbol.asyncIterator]() {
          yield* good.watch(options);
        },
      }),
    }),
  ],
  [
    'concurrency.counter',
    'conflicts are resolved by force',
    (good) => ({
      update: (object, options) =>
        good
          .update(object, options)
          .catch(() => good.update({ ...object, metadata: { ...object.metadata, resourceVersion: '' } }, options)),
    }),
  ],
];

function harnessOf(fault: Fault) {
  return {
    name: 'faulty',
    offers: ['warnings', 'forgetHistory', 'unknownFields'] as const,
    async open() {
      const store = new MemoryStore({ clock: systemClock });
      const plane = await createControlPlane({ storage: store, kinds: clientSuiteKinds, controllers: false });
      const good = createInProcessClient(plane.registry);
      const client: ApiClient = {
        resource: (kind) => withFault(good.resource(kind) as Client, fault) as never,
        dynamic: (resource, options) => withFault(good.dynamic(resource, options), fault),
        discover: () => good.discover(),
      };
      return {
        client,
        namespaces: ['default', 'kube-public'] as const,
        forgetHistory: async () => store.compact(await store.currentRevision()),
        dispose: () => plane.close(),
      };
    },
  };
}

const known = new Map(clientCases.map((clientCase) => [clientCase.id, clientCase]));

for (const [caseId, what, fault] of faults) {
  test.serial(`${caseId} detects that ${what}`, async (t) => {
    const clientCase = known.get(caseId) as ClientCase;
    // Some faults block a case indefinitely; with a correct client it takes a fraction of this.
    const timeoutMs = caseId === 'read.version-of-the-future' ? 20_000 : 1_500;
    const found = await runClientCase(harnessOf(fault), clientCase, { timeoutMs }).then(
      () => false,
      () => true,
    );
    t.true(found);
  });
}

test('ids of cases are unique, and there are at least as many as documented', (t) => {
  t.is(known.size, clientCases.length);
  t.true(known.size >= 90, `${known.size}`);
});
