import {
  Backoff,
  byControllerUid,
  byNamespace,
  createLister,
  type IndexFunction,
  Informer,
  type Lister,
} from '@keelson/client';
import {
  isStatusError,
  type KindDefinition,
  type KubeObject,
  parseFieldSelector,
  parseLabelSelector,
  type ResourceClient,
  type Stored,
} from '@keelson/core';
import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core/runtime';
import type { ControllerHost } from './controller-definition.ts';

/** Reads from the local copy of a kind. Objects are shared and must not be modified. */
export interface ObjectReader<T extends KubeObject> {
  /** An object by `namespace/name`, or by `name` for cluster-scoped kinds. */
  get(key: string): Stored<T> | undefined;
  list(): Stored<T>[];
  inNamespace(namespace: string): Stored<T>[];
  /** The objects that `owner` controls. */
  controlledBy(owner: KubeObject): Stored<T>[];
  /**
   * The objects for which `values` returns `value`. The index is built at the first use of this function, so that the
   * function must be a constant; a kind has at most 32 indexes.
   *
   * @throws Error for a further function
   */
  by(values: IndexFunction<T>, value: string): Stored<T>[];
}

/** Limits a local copy, to save memory. Default: all objects, complete. */
export interface Selection<T extends KubeObject = KubeObject> {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Only apiVersion, kind and metadata are kept. */
  readonly metadataOnly?: boolean;
  /**
   * Reduces an object to the fields that are read; name, namespace, uid and resourceVersion are necessary. Must be a
   * constant: only controllers that state the same function share a copy. Default: whole objects.
   */
  readonly keep?: ((object: T) => T) | undefined;
}

/** A condition on the local copy, and who waits for it. */
interface Waiter {
  readonly condition: () => boolean;
  readonly resolve: () => void;
}

/** A function that is created for each call would create an index for each call. */
const maxIndexes = 32;

/** The one informer of a kind that all controllers of a process share. */
export class SharedInformer<T extends KubeObject = KubeObject> implements ObjectReader<T> {
  readonly kind: KindDefinition<T>;
  readonly informer: Informer<T, Stored<T>>;
  /** True when an object belongs to this copy. */
  readonly selects: (object: T) => boolean;
  readonly #client: ResourceClient<T>;
  readonly #clock: Clock;
  readonly #indexes = new Map<IndexFunction<T>, Lister<Stored<T>, 'index'>>();
  #waiters: Waiter[] = [];

  constructor(kind: KindDefinition<T>, host: ControllerHost, selection: Selection<T> = {}) {
    const { client, clock, logger, freeze = false } = host;
    const { metadataOnly, keep, ...selectors } = selection;
    const { group, version, names } = kind;
    this.kind = kind;
    this.#client = metadataOnly
      ? (client.dynamic({ group, version, resource: names.plural }, { metadataOnly }) as ResourceClient<T>)
      : client.resource(kind);
    this.#clock = clock;
    this.selects = selects(kind, selectors);
    this.informer = new Informer<T, Stored<T>>({
      client: this.#client,
      keep: (object) => {
        const whole = withoutManagedFields(kind, object);
        const kept = (keep === undefined ? whole : keep(whole)) as Stored<T>;
        return freeze ? deepFreeze(kept) : kept;
      },
      progressed: () => this.#notify(),
      ...selectors,
      clock,
      logger,
    });
  }

  get(key: string): Stored<T> | undefined {
    return this.informer.get(key);
  }

  list(): Stored<T>[] {
    return [...this.informer.values()];
  }

  inNamespace(namespace: string): Stored<T>[] {
    return this.by(byNamespace, namespace);
  }

  controlledBy(owner: KubeObject): Stored<T>[] {
    return this.by(byControllerUid, owner.metadata?.uid ?? '');
  }

  by(values: IndexFunction<T>, value: string): Stored<T>[] {
    let lister = this.#indexes.get(values);
    if (lister === undefined) {
      if (this.#indexes.size >= maxIndexes)
        throw new Error(
          `more than ${maxIndexes} index functions for ${this.kind.names.plural}; pass constants to by()`,
        );
      lister = createLister(this.informer, { indexes: { index: values } });
      this.#indexes.set(values, lister);
    }
    return lister.by('index', value);
  }

  /** Waits until a condition on this copy holds. It is evaluated after each change and bookmark. */
  until(condition: () => boolean, signal: AbortSignal): Promise<void> {
    if (condition() || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const leave = () => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        resolve();
      };
      const waiter: Waiter = {
        condition,
        resolve: () => {
          removeAbortListener(signal, leave);
          resolve();
        },
      };
      this.#waiters.push(waiter);
      addAbortListener(signal, leave);
    });
  }

  /** Number of callers that wait for a condition. */
  get waiting(): number {
    return this.#waiters.length;
  }

  /** Calls `request` with the client of this kind until it succeeds, is rejected, or the signal aborts. */
  async ask<R>(request: (client: ResourceClient<T>) => Promise<R>, signal: AbortSignal): Promise<R | undefined> {
    const backoff = new Backoff(this.#clock);
    while (!signal.aborted) {
      try {
        return await request(this.#client);
      } catch (error) {
        if (isStatusError(error) && error.code < 500 && error.code !== 429) return undefined;
        await backoff.wait(signal);
      }
    }
    return undefined;
  }

  #notify(): void {
    if (this.#waiters.length === 0) return;
    this.#waiters = this.#waiters.filter(({ condition, resolve }) => {
      const met = condition();
      if (met) resolve();
      return !met;
    });
  }
}

function selects<T extends KubeObject>(
  kind: KindDefinition<T>,
  { labelSelector, fieldSelector }: Selection,
): (object: T) => boolean {
  const labels = labelSelector === undefined ? undefined : parseLabelSelector(labelSelector);
  const fields = fieldSelector === undefined ? undefined : parseFieldSelector(fieldSelector);
  return (object) =>
    labels?.matches(object.metadata?.labels) !== false &&
    fields?.matches((field) => kind.selectableFields.get(field)?.(object) ?? '') !== false;
}

/** Lists of some servers contain objects without apiVersion and kind. */
function withoutManagedFields<T extends KubeObject>({ apiVersion, kind }: KindDefinition, object: T): T {
  object.apiVersion ??= apiVersion;
  object.kind ??= kind;
  if (object.metadata?.managedFields !== undefined) delete object.metadata.managedFields;
  return object;
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const field of Object.values(value)) deepFreeze(field);
  return Object.freeze(value);
}
