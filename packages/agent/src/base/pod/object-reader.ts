import { type ApiClient, isStatusError, type KindDefinition, type KubeObject } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import { ConfigMap, PersistentVolume, PersistentVolumeClaim, Secret, Service } from '@keelson/kinds';

interface Cached<T> {
  readonly atMs: number;
  readonly value: Promise<T>;
}

/** Reads the API objects that pods refer to. */
export interface ObjectReader {
  /**
   * Undefined when the object does not exist.
   * @throws when the API server does not answer
   */
  configMap(namespace: string, name: string): Promise<ConfigMap | undefined>;
  secret(namespace: string, name: string): Promise<Secret | undefined>;
  services(namespace: string): Promise<readonly Service[]>;
  /** The newest state, because pods wait until a claim is bound. */
  claim(namespace: string, name: string): Promise<PersistentVolumeClaim | undefined>;
  volume(name: string): Promise<PersistentVolume | undefined>;
}

const maxLast = 4096;

/**
 * Reads objects on demand and caches config maps and secrets for `ttlMs`. When the server does not answer, the cached
 * object is returned, however old it is: see docs/reference/agent-rules.md#periods-and-limits.
 */
export class CachedObjectReader implements ObjectReader {
  readonly #api: ApiClient;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #cache = new Map<string, Cached<unknown>>();
  readonly #last = new Map<string, unknown>();

  constructor(api: ApiClient, clock: Clock, ttlMs: number) {
    this.#api = api;
    this.#clock = clock;
    this.#ttlMs = ttlMs;
  }

  configMap(namespace: string, name: string): Promise<ConfigMap | undefined> {
    return this.#object(ConfigMap, namespace, name);
  }

  secret(namespace: string, name: string): Promise<Secret | undefined> {
    return this.#object(Secret, namespace, name);
  }

  services(namespace: string): Promise<readonly Service[]> {
    return this.#cached(`services/${namespace}`, Math.min(this.#ttlMs, 5_000), async () => {
      const { items } = await this.#api.resource(Service).namespace(namespace).list({ resourceVersion: '0' });
      return items;
    });
  }

  claim(namespace: string, name: string): Promise<PersistentVolumeClaim | undefined> {
    return found(this.#api.resource(PersistentVolumeClaim).namespace(namespace).get(name));
  }

  volume(name: string): Promise<PersistentVolume | undefined> {
    return found(this.#api.resource(PersistentVolume).get(name));
  }

  #object<T extends KubeObject>(kind: KindDefinition<T>, namespace: string, name: string): Promise<T | undefined> {
    return this.#cached(`${kind.kind}/${namespace}/${name}`, this.#ttlMs, () =>
      found(this.#api.resource(kind).namespace(namespace).get(name)),
    );
  }

  #cached<T>(key: string, ttlMs: number, read: () => Promise<T>): Promise<T> {
    const nowMs = this.#clock.monotonic();
    const known = this.#cache.get(key);
    if (known !== undefined && nowMs - known.atMs < ttlMs) return known.value as Promise<T>;
    this.#dropOld(nowMs);
    const value = this.#answerOrLast(key, read);
    const entry = { atMs: nowMs, value };
    this.#cache.set(key, entry);
    // Absent objects and failures are not cached: the object is often created soon afterwards.
    const drop = () => {
      if (this.#cache.get(key) === entry) this.#cache.delete(key);
    };
    value.then((found) => found === undefined && drop(), drop);
    return value;
  }

  async #answerOrLast<T>(key: string, read: () => Promise<T>): Promise<T> {
    try {
      const value = await read();
      this.#last.delete(key);
      this.#last.set(key, value);
      const oldest = this.#last.keys().next();
      if (this.#last.size > maxLast && !oldest.done) this.#last.delete(oldest.value);
      return value;
    } catch (error) {
      // An error status is an answer: an object that must no longer be read is not returned from the cache.
      if (isStatusError(error) || !this.#last.has(key)) throw error;
      return this.#last.get(key) as T;
    }
  }

  #dropOld(nowMs: number): void {
    for (const [key, { atMs }] of this.#cache) {
      if (nowMs - atMs < this.#ttlMs) break;
      this.#cache.delete(key);
    }
  }
}

async function found<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isStatusError(error, 'NotFound')) return undefined;
    throw error;
  }
}

/** The reader of an agent without an API server. */
export const noObjects: ObjectReader = {
  configMap: () => Promise.reject(new Error('there is no API server to read config maps from')),
  secret: () => Promise.reject(new Error('there is no API server to read secrets from')),
  services: () => Promise.resolve([]),
  claim: () => Promise.reject(new Error('there is no API server to read claims from')),
  volume: () => Promise.reject(new Error('there is no API server to read volumes from')),
};
