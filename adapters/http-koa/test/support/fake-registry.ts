import {
  type ConnectLocation,
  defineKind,
  type KindDefinition,
  optional,
  type SubresourceDefinition,
  s,
  statusErrors,
} from '@keelson/core';
import {
  type Answer,
  type EventRepresentation,
  type ListAnswer,
  type ResourceRegistry,
  type ResourceService,
  type ResourceWatch,
  type StoredList,
  StoredObject,
  type WatchEvent,
  type WatchEventType,
} from '@keelson/core/internal';

const data = s.message('test.Data', 'Some data.', {
  data: optional(2, s.map(s.string()), 'Anything.'),
  status: optional(3, s.raw(), 'Observed.'),
});

const scale: SubresourceDefinition = {
  type: 'action',
  name: 'rollback',
  bodyKind: { group: '', version: 'v1', kind: 'Rollback' },
  schema: data,
  run: async () => ({ code: 201, object: { kind: 'Rollback' } }),
};

export const configMap: KindDefinition = defineKind({ group: '', version: 'v1', kind: 'ConfigMap', schema: data });
export const namespace: KindDefinition = defineKind({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  scope: 'Cluster',
  schema: data,
});
export const widget: KindDefinition = defineKind({
  group: 'test.io',
  version: 'v1',
  kind: 'Widget',
  schema: data,
  subresources: [{ type: 'status', name: 'status' }, scale],
  verbs: ['get', 'list', 'patch', 'watch'],
});

export function stored(
  kind: KindDefinition,
  name: string,
  revision: number,
  value = 'x',
  ns = 'default',
): StoredObject {
  const json = JSON.stringify({
    kind: kind.kind,
    apiVersion: kind.apiVersion,
    metadata: {
      resourceVersion: String(revision),
      name,
      ...(kind.scope === 'Namespaced' ? { namespace: ns } : {}),
      uid: `uid-${name}`,
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    data: { value },
  });
  return new StoredObject(`/core/${kind.names.plural}/${ns}/${name}`, revision, revision, Buffer.from(json));
}

/** A watch fed by a test. */
export class FakeWatch implements ResourceWatch {
  revision = 0;
  closed = false;
  reads = 0;
  bookmarksRequested = 0;
  /** Queues a bookmark when one is requested. */
  onBookmark: (() => void) | undefined;
  #events: WatchEvent[] = [];
  #failure: unknown;
  #readable: (() => void) | undefined;

  push(...events: WatchEvent[]): void {
    this.#events.push(...events);
    this.#wake();
  }

  fail(error: unknown): void {
    this.#failure = error;
    this.#wake();
  }

  read(maxEvents: number): readonly WatchEvent[] {
    this.reads += 1;
    const events = this.#events.splice(0, maxEvents);
    if (events.length === 0 && this.#failure !== undefined) throw this.#failure;
    return events;
  }

  onReadable(callback: () => void): void {
    this.#readable = callback;
    if (this.#events.length > 0 || this.#failure !== undefined) this.#wake();
  }

  get waiting(): number {
    return this.#events.length;
  }

  requestBookmark(): void {
    this.bookmarksRequested += 1;
    this.onBookmark?.();
  }

  close(): void {
    this.closed = true;
    this.#readable = undefined;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent> {
    yield* this.#events.splice(0);
  }

  #wake(): void {
    const callback = this.#readable;
    this.#readable = undefined;
    callback?.();
  }
}

export function event(type: WatchEventType, object: StoredObject): WatchEvent {
  const frames = new Map<string, Buffer>();
  return {
    type,
    object,
    encoded(representation: EventRepresentation): Buffer {
      let frame = frames.get(representation.id);
      if (frame === undefined) {
        frame = representation.encode(type, object);
        frames.set(representation.id, frame);
      }
      return frame;
    },
  };
}

export function listOf(kind: KindDefinition, objects: readonly StoredObject[], revision = 100, token = ''): ListAnswer {
  const list: StoredList = {
    revision,
    count: objects.length,
    objects: () => objects,
    ready: true,
    *chunks(representation, separator) {
      const comma = Buffer.from(separator);
      let first = true;
      for (const object of objects) {
        if (!first) yield comma;
        first = false;
        yield object.encoded(representation);
      }
    },
  };
  return { kind, list, continue: token };
}

/** A call that reached the service. */
export interface Call {
  readonly operation: string;
  readonly args: readonly unknown[];
}

/** A service whose operations can all be replaced; it records its calls. */
export class FakeService implements ResourceService {
  readonly kind: KindDefinition;
  readonly calls: Call[] = [];
  readonly objects = new Map<string, StoredObject>();
  watches: FakeWatch[] = [];
  /** Replaces operations by name. */
  on: Partial<Record<keyof ResourceService, (...args: never[]) => Promise<unknown>>> = {};

  constructor(kind: KindDefinition) {
    this.kind = kind;
  }

  #call<T>(operation: keyof ResourceService, args: readonly unknown[], fallback: () => T): Promise<T> {
    this.calls.push({ operation, args });
    const replaced = this.on[operation];
    if (replaced !== undefined) return replaced(...(args as never[])) as Promise<T>;
    return (async () => fallback())();
  }

  #object(name: string | undefined): Answer {
    const object = this.objects.get(name ?? '');
    if (object === undefined)
      throw statusErrors.notFound({ group: this.kind.group, resource: this.kind.names.plural }, name ?? '');
    return { stored: object, kind: this.kind, code: 200 };
  }

  create(...args: Parameters<ResourceService['create']>) {
    return this.#call('create', args, (): Answer => {
      const object = stored(this.kind, 'created', 7);
      return { stored: object, kind: this.kind, code: 201 };
    });
  }
  get(...args: Parameters<ResourceService['get']>) {
    return this.#call('get', args, () => this.#object(args[1].name));
  }
  list(...args: Parameters<ResourceService['list']>) {
    return this.#call('list', args, () => listOf(this.kind, [...this.objects.values()]));
  }
  watch(...args: Parameters<ResourceService['watch']>) {
    return this.#call('watch', args, (): ResourceWatch => {
      const watch = new FakeWatch();
      this.watches.push(watch);
      return watch;
    });
  }
  update(...args: Parameters<ResourceService['update']>) {
    return this.#call('update', args, () => this.#object(args[1].name));
  }
  patch(...args: Parameters<ResourceService['patch']>) {
    return this.#call('patch', args, () => this.#object(args[1].name));
  }
  delete(...args: Parameters<ResourceService['delete']>) {
    return this.#call('delete', args, () => this.#object(args[1].name));
  }
  deleteCollection(...args: Parameters<ResourceService['deleteCollection']>) {
    return this.#call('deleteCollection', args, () => listOf(this.kind, [...this.objects.values()]));
  }
  getSubresource(...args: Parameters<ResourceService['getSubresource']>) {
    return this.#call('getSubresource', args, () => this.#object(args[1].name));
  }
  updateSubresource(...args: Parameters<ResourceService['updateSubresource']>) {
    return this.#call('updateSubresource', args, () => this.#object(args[1].name));
  }
  patchSubresource(...args: Parameters<ResourceService['patchSubresource']>) {
    return this.#call('patchSubresource', args, () => this.#object(args[1].name));
  }
  createSubresource(...args: Parameters<ResourceService['createSubresource']>) {
    return this.#call(
      'createSubresource',
      args,
      (): Answer => ({ object: { kind: 'Rollback', apiVersion: 'v1' }, code: 201 }),
    );
  }
  connect(...args: Parameters<ResourceService['connect']>) {
    return this.#call('connect', args, (): ConnectLocation => ({ to: 'nothing' }));
  }
}

export class FakeRegistry implements ResourceRegistry {
  generation = 1;
  readonly #services = new Map<string, FakeService>();

  constructor(kinds: readonly KindDefinition[] = [configMap, namespace, widget]) {
    for (const kind of kinds) this.add(kind);
  }

  kinds(): readonly KindDefinition[] {
    return [...this.#services.values()].map((service) => service.kind);
  }

  find(resource: { group: string; version: string; resource: string }): FakeService | undefined {
    return this.#services.get(`${resource.group}/${resource.version}/${resource.resource}`);
  }

  service(kind: KindDefinition): FakeService {
    const service = this.find({ group: kind.group, version: kind.version, resource: kind.names.plural });
    if (service === undefined) throw new Error(`no service for ${kind.kind}`);
    return service;
  }

  add(kind: KindDefinition): void {
    this.#services.set(`${kind.group}/${kind.version}/${kind.names.plural}`, new FakeService(kind));
    this.generation += 1;
  }

  remove(kind: KindDefinition): void {
    this.#services.delete(`${kind.group}/${kind.version}/${kind.names.plural}`);
    this.generation += 1;
  }

  replace(removed: readonly KindDefinition[], added: readonly { readonly kind: KindDefinition }[]): void {
    for (const kind of removed) this.remove(kind);
    for (const { kind } of added) this.add(kind);
  }
}
