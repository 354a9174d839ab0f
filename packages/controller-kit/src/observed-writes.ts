import { isOlderVersion, keyOf } from '@keelson/client';
import {
  type ApiClient,
  type GroupVersionResource,
  isStatusError,
  type KubeList,
  type KubeObject,
  type ResourceClient,
  type Status,
} from '@keelson/core';
import type { SharedInformer } from './shared-informer.ts';

/** Returns the local copy of a resource, if the controller has one. */
export type FindInformer = (resource: GroupVersionResource) => SharedInformer | undefined;

/** A write that a run has made. */
export interface RecordedWrite {
  readonly verb: 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';
  /** The plural, with the subresource: `deployments/status`. */
  readonly resource: string;
  /** Key of the written object; empty when the server was to generate the name and the write failed. */
  readonly key: string;
  /** Text of the error; absent for a successful write. */
  readonly error?: string;
}

/** Identifies what a successful write changed, to recognize the change when an informer reports it. */
export interface WrittenVersion {
  readonly resource: GroupVersionResource;
  readonly resourceVersion?: string;
  /** Uid of an object that was removed immediately. */
  readonly removedUid?: string;
}

/** Resolves when a local copy contains a write. */
type Check = (signal: AbortSignal) => Promise<void>;

/** Number of writes of one run that are recorded. */
const maxRecorded = 16;

interface Write {
  readonly verb: RecordedWrite['verb'];
  readonly subresource?: string;
  readonly key: string;
  readonly options: { readonly dryRun?: boolean; readonly gracePeriodSeconds?: number } | undefined;
}

/**
 * The writes of one run. Informers lag behind writes, so a controller that decided again from an older copy would
 * create or delete twice.
 */
export class ObservedWrites {
  readonly #find: FindInformer;
  readonly #written: (version: WrittenVersion) => void;
  readonly #checks: Check[] = [];
  readonly #recorded: RecordedWrite[] = [];
  #count = 0;

  /** @param written called for each successful write */
  constructor(find: FindInformer, written: (version: WrittenVersion) => void = () => {}) {
    this.#find = find;
    this.#written = written;
  }

  /** Number of successful writes. */
  get count(): number {
    return this.#count;
  }

  /** The last writes, at most 16. */
  get recorded(): readonly RecordedWrite[] {
    return this.#recorded;
  }

  /** True when {@link visible} has something to wait for. */
  get pending(): boolean {
    return this.#checks.length > 0;
  }

  /** A client whose writes are recorded here. */
  client(client: ApiClient): ApiClient {
    return {
      resource: (kind) => this.#observe(client.resource(kind)),
      dynamic: (resource, options) => this.#observe(client.dynamic(resource, options)),
      discover: () => client.discover(),
    };
  }

  /** Waits until the local copies contain all writes, or the signal aborts. */
  async visible(signal: AbortSignal): Promise<void> {
    for (const check of this.#checks.splice(0)) await check(signal);
  }

  #observe<T extends KubeObject>(client: ResourceClient<T>, namespace = ''): ResourceClient<T> {
    const resource = client.resourceName;
    const informer = this.#find(resource);
    const keyIn = (name = '') => keyOf({ metadata: { namespace, name } });
    const call = async <R extends KubeObject | Status>(write: Write, request: Promise<R>): Promise<R> => {
      if (write.options?.dryRun) return request;
      try {
        const answer = await request;
        this.#succeeded(resource, informer, write, answer as KubeObject & Status);
        return answer;
      } catch (error) {
        this.#failed(resource, informer, write, error);
        throw error;
      }
    };
    const named = (verb: Write['verb'], name: string, options: Write['options'], subresource?: string): Write => ({
      ...{ verb, key: keyIn(name), options },
      ...(subresource === undefined ? {} : { subresource }),
    });
    const whole = (verb: Write['verb'], object: KubeObject, options: Write['options']): Write => ({
      verb,
      key: object.metadata?.name ? keyOf({ metadata: { namespace, ...object.metadata } }) : '',
      options,
    });
    return {
      resourceName: resource,
      namespace: (name) => this.#observe(client.namespace(name), name),
      create: (object, options) => call(whole('create', object, options), client.create(object, options)),
      get: (name, options) => client.get(name, options),
      list: (options) => client.list(options),
      update: (object, options) => call(whole('update', object, options), client.update(object, options)),
      patch: (name, type, patch, options) =>
        call(named('patch', name, options), client.patch(name, type, patch, options)),
      apply: (configuration, options) =>
        call(whole('patch', configuration as KubeObject, options), client.apply(configuration, options)),
      delete: (name, options) => call(named('delete', name, options), client.delete(name, options)),
      deleteCollection: async (options) => {
        const deleted = await client.deleteCollection(options);
        if (!options?.dryRun) this.#deletedAll(resource, informer, deleted);
        return deleted;
      },
      watch: (options) => client.watch(options),
      getSubresource: (name, subresource) => client.getSubresource(name, subresource),
      updateSubresource: (name, subresource, body, options) =>
        call(named('update', name, options, subresource), client.updateSubresource(name, subresource, body, options)),
      patchSubresource: (name, subresource, type, patch, options) =>
        call(
          named('patch', name, options, subresource),
          client.patchSubresource(name, subresource, type, patch, options),
        ),
      createSubresource: (name, subresource, body, options) =>
        call(named('create', name, options, subresource), client.createSubresource(name, subresource, body, options)),
    };
  }

  #succeeded(
    resource: GroupVersionResource,
    informer: SharedInformer | undefined,
    write: Write,
    answer: KubeObject & Status,
  ): void {
    const { verb, subresource } = write;
    const { resourceVersion, uid } = (answer as KubeObject).metadata ?? {};
    const key = write.key === '' ? keyOf(answer) : write.key;
    this.#record({ verb, resource: pathOf(resource, subresource), key });
    if (verb === 'delete') {
      // The answer to an immediate removal is a Status, or the last state of the object.
      const isStatus = answer.kind === 'Status' && resourceVersion === undefined;
      const removedUid = isStatus ? (answer.details?.uid ?? informer?.get(key)?.metadata?.uid) : uid;
      const immediate = isStatus || write.options?.gracePeriodSeconds === 0;
      this.#written({
        resource,
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
        ...(immediate && removedUid !== undefined ? { removedUid } : {}),
      });
      if (informer !== undefined && removedUid !== undefined) this.#checks.push(gone(informer, key, removedUid));
      return;
    }
    if (resourceVersion !== undefined && resourceVersion !== '') {
      this.#written({ resource, resourceVersion });
      if (informer?.selects(answer)) this.#checks.push(reached(informer, resourceVersion));
    } else if (informer !== undefined) this.#checks.push(current(informer, key));
  }

  #deletedAll(
    resource: GroupVersionResource,
    informer: SharedInformer | undefined,
    deleted: KubeList<KubeObject> | Status,
  ): void {
    this.#record({ verb: 'deletecollection', resource: resource.resource, key: '' });
    for (const object of 'items' in deleted ? deleted.items : []) {
      const { uid } = object.metadata ?? {};
      if (uid === undefined) continue;
      this.#written({ resource, removedUid: uid });
      if (informer !== undefined) this.#checks.push(gone(informer, keyOf(object), uid));
    }
  }

  /**
   * A conflict, or an object that exists or is missing unexpectedly, shows that the local copy is behind. After an
   * error of the server or the connection the write may have been made.
   */
  #failed(
    resource: GroupVersionResource,
    informer: SharedInformer | undefined,
    { verb, subresource, key }: Write,
    error: unknown,
  ): void {
    this.#record({ verb, resource: pathOf(resource, subresource), key, error: (error as Error).message }, true);
    if (informer === undefined) return;
    const isBehind = !isStatusError(error) || [404, 409].includes(error.code) || error.code >= 500;
    if (isBehind) this.#checks.push(key === '' ? complete(informer) : current(informer, key));
  }

  #record(write: RecordedWrite, failed = false): void {
    if (!failed) this.#count += 1;
    this.#recorded.push(write);
    if (this.#recorded.length > maxRecorded) this.#recorded.shift();
  }
}

function pathOf({ resource }: GroupVersionResource, subresource: string | undefined): string {
  return subresource === undefined ? resource : `${resource}/${subresource}`;
}

/** Returns a check that waits until the local copy of the kind has reached a revision. */
function reached(informer: SharedInformer, resourceVersion: string): Check {
  return (signal) => informer.until(() => !isOlderVersion(informer.informer.resourceVersion, resourceVersion), signal);
}

/** Returns a check that waits until the local copy shows that an object is deleted, or is being deleted. */
function gone(informer: SharedInformer, key: string, uid: string): Check {
  const isGone = () => {
    const { metadata } = informer.get(key) ?? {};
    return metadata?.uid !== uid || metadata.deletionTimestamp !== undefined;
  };
  return (signal) => informer.until(isGone, signal);
}

/** Returns a check that reads one object from the server, and waits until the local copy of it is as new. */
function current(informer: SharedInformer, key: string): Check {
  return async (signal) => {
    const found = await informer.ask(async (client) => {
      try {
        return { object: await inNamespaceOf(client, key).get(key.slice(key.indexOf('/') + 1), { signal }) };
      } catch (error) {
        if (isStatusError(error) && error.code === 404) return { object: undefined };
        throw error;
      }
    }, signal);
    if (found === undefined) return;
    const { object } = found;
    if (object === undefined) {
      const uid = informer.get(key)?.metadata?.uid;
      return uid === undefined ? undefined : informer.until(() => informer.get(key)?.metadata?.uid !== uid, signal);
    }
    if (informer.selects(object)) await reached(informer, object.metadata?.resourceVersion ?? '')(signal);
  };
}

/**
 * Returns a check that lists all objects from the server, and waits until the local copy is as new as the newest of
 * them.
 */
function complete(informer: SharedInformer): Check {
  return async (signal) => {
    const listed = await informer.ask((client) => client.list({ signal }), signal);
    for (const object of listed?.items ?? [])
      if (informer.selects(object)) await reached(informer, object.metadata?.resourceVersion ?? '')(signal);
  };
}

function inNamespaceOf<T extends KubeObject>(client: ResourceClient<T>, key: string): ResourceClient<T> {
  return key.includes('/') ? client.namespace(key.slice(0, key.indexOf('/'))) : client;
}
