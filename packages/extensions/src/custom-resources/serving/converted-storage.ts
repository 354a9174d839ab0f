import { setImmediate } from 'node:timers/promises';
import type { KindDefinition, KubeObject } from '@keelson/core';
import {
  equalJson,
  ObjectList,
  objectCodecOf,
  type ReadPoint,
  type ResourceStorage,
  type ResourceWatch,
  type StorageListOptions,
  type StorageWatchOptions,
  type StoredList,
  StoredObject,
  type UpdateDecision,
  type UpdateOutcome,
  type WriteOptions,
} from '@keelson/core/internal';
import { ConvertedWatch } from './converted-watch.ts';

/** Converts objects between the versions of a definition. */
export interface Conversion {
  /** The version in which objects are stored. */
  readonly stored: KindDefinition;
  /** The version that is served. */
  readonly served: KindDefinition;
  /**
   * True when stored objects may be in another version, or may have been written with an earlier schema. Otherwise the
   * stored bytes are served unchanged.
   */
  readonly changes: boolean;
  /** Converts objects to the version `to` and keeps their order. The caller may modify the results. */
  readonly convert: (
    objects: readonly KubeObject[],
    to: KindDefinition,
  ) => readonly KubeObject[] | Promise<readonly KubeObject[]>;
  /** Adds defaults to an object and prunes it, with the schema of its version. */
  readonly complete: (object: KubeObject) => KubeObject;
}

/** Maximum number of objects in one conversion call. */
const batch = 250;

/**
 * The objects of one version of a definition. Objects that are stored in another version or with an earlier schema are
 * converted when they are read. Writes are converted to the storage version. When the definition changes, open watches
 * continue with the new conversion.
 */
export class ConvertedStorage implements ResourceStorage {
  readonly #inner: ResourceStorage;
  #conversion: Conversion;
  /** Converted objects by stored object, shared by watches, gets and lists. */
  #known = new WeakMap<StoredObject, StoredObject>();
  readonly #watches = new Set<ConvertedWatch>();

  constructor(inner: ResourceStorage, conversion: Conversion) {
    this.#inner = inner;
    this.#conversion = conversion;
  }

  get conversion(): Conversion {
    return this.#conversion;
  }

  /** Replaces the conversion for all later reads and watch events. */
  use(conversion: Conversion): void {
    this.#conversion = conversion;
    this.#known = new WeakMap();
  }

  /** Ends all watches: the version is not served any more. */
  end(): void {
    for (const watch of this.#watches) watch.end();
  }

  async create(key: string, json: Buffer, options?: WriteOptions): Promise<StoredObject> {
    const stored = await this.#toStorage(json);
    const object = await this.#inner.create(key, stored, options);
    return stored === json ? object : restored(object, json);
  }

  async get(
    key: string,
    at: ReadPoint,
    options?: { readonly signal?: AbortSignal },
  ): Promise<StoredObject | undefined> {
    const object = await this.#inner.get(key, at, options);
    if (object === undefined || !this.#conversion.changes) return object;
    return (await this.converted([object]))[0];
  }

  async list(prefix: string, options: StorageListOptions): Promise<StoredList> {
    const page = await this.#inner.list(prefix, options);
    if (!this.#conversion.changes) return page;
    const objects: StoredObject[] = [];
    const all = [...page.objects()];
    for (let start = 0; start < all.length; start += batch) {
      objects.push(...(await this.converted(all.slice(start, start + batch))));
      if (start + batch < all.length) await setImmediate();
    }
    return new ObjectList(objects, page.revision, page.next, page.remaining);
  }

  async watch(prefix: string, options: StorageWatchOptions): Promise<ResourceWatch> {
    const inner = await this.#inner.watch(prefix, options);
    const watch = new ConvertedWatch(this, inner, options.signal, () => this.#watches.delete(watch));
    this.#watches.add(watch);
    return watch;
  }

  async update(
    key: string,
    decide: (current: StoredObject | undefined) => UpdateDecision | Promise<UpdateDecision>,
    options?: { readonly signal?: AbortSignal },
  ): Promise<UpdateOutcome> {
    let written: { readonly json: Buffer; readonly stored: Buffer } | undefined;
    const outcome = await this.#inner.update(
      key,
      async (stored) => {
        written = undefined;
        const [current] = stored === undefined ? [] : await this.converted([stored]);
        const decision = await decide(current);
        if (decision.do === 'delete') {
          // The answer is prepared before the deletion, so that nothing is deleted when a conversion fails.
          if (decision.json !== undefined) {
            written = { json: decision.json, stored: await this.#toStorage(decision.json) };
            return { ...decision, json: written.stored };
          }
          if (current !== undefined && stored !== undefined) written = { json: current.json, stored: stored.json };
          return decision;
        }
        // An object in another version or with an earlier schema is written in the current form, even without other
        // changes.
        const json =
          decision.do === 'write'
            ? decision.json
            : current === undefined || (current === stored && this.#isStorageVersion(current.json))
              ? undefined
              : objectCodecOf(this.#conversion.served).encode(current.value());
        if (json === undefined) return decision;
        written = { json, stored: await this.#toStorage(json) };
        return { ...decision, do: 'write', json: written.stored };
      },
      options,
    );
    const { object } = outcome;
    if (written === undefined) return { ...outcome, object: (await this.converted([object]))[0] ?? object };
    return written.stored === written.json ? outcome : { ...outcome, object: restored(object, written.json) };
  }

  currentRevision(): Promise<number> {
    return this.#inner.currentRevision();
  }

  /** The converted objects if no conversion is needed or all results are cached; otherwise undefined. */
  convertedNow(objects: readonly StoredObject[]): readonly StoredObject[] | undefined {
    if (!this.#conversion.changes) return objects;
    const known = objects.map((object) => this.#known.get(object));
    return known.every((object) => object !== undefined) ? (known as StoredObject[]) : undefined;
  }

  /** Converts stored objects to the served version. */
  async converted(objects: readonly StoredObject[]): Promise<readonly StoredObject[]> {
    const conversion = this.#conversion;
    const now = this.convertedNow(objects);
    if (now !== undefined) return now;
    const missing = objects.filter((object) => !this.#known.has(object));
    const values = missing.map((object) => object.readable().value());
    const { served } = conversion;
    const foreign = values.flatMap((value, i) => (value.apiVersion === served.apiVersion ? [] : [i]));
    const results =
      foreign.length === 0
        ? []
        : await conversion.convert(
            foreign.map((i) => copyOf(values[i])),
            served,
          );
    const changed = [...values];
    for (const [n, i] of foreign.entries()) changed[i] = results[n] as KubeObject;
    const known = new Map<StoredObject, StoredObject>();
    for (const [i, object] of missing.entries()) {
      const complete = conversion.complete(changed[i] as KubeObject);
      const same = equalJson(complete, values[i]);
      const result = same ? object : restored(object, objectCodecOf(served).encode(complete));
      known.set(object, result);
      if (conversion === this.#conversion) this.#known.set(object, result);
    }
    return objects.map((object) => known.get(object) ?? this.#known.get(object) ?? object);
  }

  #isStorageVersion(json: Buffer): boolean {
    const head = Buffer.from(`,"apiVersion":${JSON.stringify(this.#conversion.stored.apiVersion)},"metadata":{`);
    const at = json.indexOf(',"apiVersion":');
    return json.compare(head, 0, head.length, at, at + head.length) === 0;
  }

  /** The bytes to store for an object of the served version. */
  async #toStorage(json: Buffer): Promise<Buffer> {
    const { stored, served, convert } = this.#conversion;
    if (stored.apiVersion === served.apiVersion) return json;
    const [object] = await convert([objectCodecOf(served).decode(json)], stored);
    return objectCodecOf(stored).encode(object as KubeObject);
  }
}

const copyOf = (value: KubeObject | undefined): KubeObject => structuredClone(value ?? {});

/** A copy of a stored object with the same revision and another content. */
function restored(object: StoredObject, json: Buffer): StoredObject {
  return StoredObject.fromValue(object.key, object.revision, object.createRevision, json);
}
