import { isStorageError, StorageErrorCode } from '@keelson/core';
import { encryptionKeyOf, tokenSecretKey } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import { type Entry, prefixRange } from '@keelson/core/storage-adapter';
import type { EncryptedStore } from './encrypted-store.ts';
import { prefixOf } from './encryption-config.ts';

/** How the objects of one resource are stored. */
export interface StoredResource {
  /** `secrets`, `deployments.apps`. */
  readonly resource: string;
  /** Name of the key for new values, `identity` for none. */
  readonly writesWith: string;
  /** Number of objects by the name of their key, `identity` for values without encryption. */
  readonly objects: Readonly<Record<string, number>>;
}

export interface RotationProgress {
  readonly state: 'running' | 'done' | 'failed';
  /** Objects of the configured resources that have been checked. */
  readonly checked: number;
  /** Objects in the store at the beginning, of all resources. */
  readonly total: number;
  /** Objects that the rotation has read so far, of all resources. */
  readonly passed: number;
  readonly rewritten: number;
  /** Objects that cannot be decrypted and were left as they are. */
  readonly unreadable: number;
  /** Why the rotation failed. */
  readonly error?: string;
}

const pageObjects = 500;
/**
 * Number of concurrent writes: enough for stores that commit groups of writes, and few in comparison with those of
 * clients.
 */
const concurrency = 8;
const attempts = 6;
const pauseMs = 1_000;
const everything = prefixRange('/');

const transient: readonly string[] = [
  StorageErrorCode.Unavailable,
  StorageErrorCode.Timeout,
  StorageErrorCode.OutcomeUnknown,
];

/** The resources that are configured or have encrypted values. Reads the whole store. */
export async function storedResources(store: EncryptedStore): Promise<StoredResource[]> {
  const found = new Map<string, { readonly writesWith: string; readonly objects: Record<string, number> }>();
  for await (const entry of pagesOf(store)) {
    const providers = store.config.of(entry.key);
    const name = encryptionKeyOf(entry.value);
    const prefix = prefixOf(entry.key);
    if (prefix === undefined || (providers === undefined && name === undefined)) continue;
    let resource = found.get(prefix);
    if (resource === undefined) {
      resource = { writesWith: providers?.writer?.name ?? 'identity', objects: {} };
      found.set(prefix, resource);
    }
    const key = entry.damaged ? 'damaged' : (name ?? 'identity');
    resource.objects[key] = (resource.objects[key] ?? 0) + 1;
  }
  return [...found].map(([prefix, resource]) => ({ resource: resourceOf(prefix), ...resource }));
}

/** `deployments.apps` of `/apps/deployments/`. */
function resourceOf(prefix: string): string {
  const [, group = '', plural = ''] = prefix.split('/');
  return group === 'core' ? plural : `${plural}.${group}`;
}

/** Every object in the order of keys. Pages are separate lists, so that a slow reader needs no old revision. */
async function* pagesOf(store: EncryptedStore): AsyncGenerator<Entry, void, undefined> {
  let range: { start: string; startExclusive?: boolean; end: string } | undefined = everything;
  while (range !== undefined) {
    let last: string | undefined;
    let more = false;
    for await (const chunk of store.stored.list(range, { limit: pageObjects })) {
      for (const entry of chunk.entries) {
        last = entry.key;
        yield entry;
      }
      more = chunk.more;
    }
    range = more && last !== undefined ? { start: last, startExclusive: true, end: everything.end } : undefined;
  }
}

/**
 * Rewrites every object that is not stored with the first provider of its resource, and the secret of continue tokens,
 * by compare-and-set. An object that another caller has changed in the meantime is read again: usually that write has
 * already used the first provider. A rotation after an interrupted one skips the objects that are already rewritten.
 */
export class Rotation {
  readonly #store: EncryptedStore;
  readonly #clock: Clock;
  readonly #stopping = new AbortController();
  #progress = { checked: 0, total: 0, passed: 0, rewritten: 0, unreadable: 0 };
  #state: RotationProgress['state'] = 'running';
  #error: string | undefined;
  /** Resolves when the rotation has ended, with success or failure. */
  readonly ended: Promise<void>;

  constructor(store: EncryptedStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.ended = this.#run().then(
      () => {
        this.#state = 'done';
      },
      (error: Error) => {
        this.#state = 'failed';
        this.#error = error.message;
      },
    );
  }

  get progress(): RotationProgress {
    const error = this.#error;
    return { state: this.#state, ...this.#progress, ...(error === undefined ? {} : { error }) };
  }

  stop(): Promise<void> {
    this.#stopping.abort();
    return this.ended;
  }

  async #run(): Promise<void> {
    this.#progress.total = (await this.#store.count(everything)).count;
    const { entry: secret } = await this.#store.stored.get(tokenSecretKey);
    if (secret !== undefined) await this.#rewrite(secret);
    const running = new Set<Promise<void>>();
    let failure: Error | undefined;
    for await (const entry of pagesOf(this.#store)) {
      if (this.#stopping.signal.aborted) throw new Error('the server has stopped; start the rotation again');
      if (failure !== undefined) break;
      this.#progress.passed += 1;
      if (this.#store.config.of(entry.key) === undefined) continue;
      this.#progress.checked += 1;
      if (!this.#isStale(entry)) continue;
      const write: Promise<void> = this.#rewrite(entry)
        .catch((error: Error) => {
          failure = error;
        })
        .finally(() => running.delete(write));
      running.add(write);
      if (running.size >= concurrency) await Promise.race(running);
    }
    await Promise.all(running);
    if (failure !== undefined) throw failure;
  }

  #isStale({ key, value, damaged }: Entry): boolean {
    if (damaged) return false;
    const providers = this.#store.config.of(key);
    return providers !== undefined && encryptionKeyOf(value) !== providers.writer?.name;
  }

  async #rewrite(found: Entry): Promise<void> {
    let entry: Entry | undefined = found;
    for (let attempt = 1; entry !== undefined && this.#isStale(entry); attempt++) {
      const plain = this.#store.open(entry);
      if (plain.damaged) {
        if (entry.key !== tokenSecretKey) this.#progress.unreadable += 1;
        return;
      }
      const { key, value, modRevision, expiresAt } = plain;
      const ttl = expiresAt === undefined ? {} : { ttlMs: Math.max(1, expiresAt - this.#clock.now()) };
      try {
        const result = await this.#store.write({ op: 'put', key, value, expect: modRevision, ...ttl });
        if (result.ok) {
          if (key !== tokenSecretKey) this.#progress.rewritten += 1;
          return;
        }
      } catch (error) {
        if (attempt >= attempts || !isStorageError(error) || !transient.includes(error.code)) throw error;
        await new Promise<void>((resolve) => this.#clock.after(pauseMs, resolve));
      }
      entry = (await this.#store.stored.get(key)).entry;
    }
  }
}
