import { byControllerUid, byNamespace, createLister, type IndexFunction, Informer, type Lister } from '@keelson/client';
import type { KindDefinition, KubeObject } from '@keelson/core';
import type { ControllerHost } from './controller-definition.ts';

/** Reads from the local copy of a kind. Objects are shared and must not be modified. */
export interface ObjectReader<T extends KubeObject> {
  /** An object by `namespace/name`, or by `name` for cluster-scoped kinds. */
  get(key: string): T | undefined;
  list(): T[];
  inNamespace(namespace: string): T[];
  /** The objects that `owner` controls. */
  controlledBy(owner: KubeObject): T[];
  /** The objects for which `values` returns `value`. The index is built at the first use of this function. */
  by(values: IndexFunction<T>, value: string): T[];
}

/** A condition on the local copy, and who waits for it. */
interface Waiter {
  readonly condition: () => boolean;
  readonly resolve: () => void;
}

/** The one informer of a kind that all controllers of a process share. */
export class SharedInformer<T extends KubeObject = KubeObject> implements ObjectReader<T> {
  readonly informer: Informer<T>;
  readonly #lister: Lister<T, 'namespace' | 'controller'>;
  readonly #indexes = new Map<IndexFunction<T>, Lister<T, 'index'>>();
  #waiters: Waiter[] = [];

  constructor(kind: KindDefinition<T>, { client, clock, logger }: ControllerHost) {
    this.informer = new Informer<T>({
      client: client.resource(kind),
      keep: withoutManagedFields,
      progressed: () => this.#notify(),
      clock,
      logger,
    });
    this.#lister = createLister(this.informer, { indexes: { namespace: byNamespace, controller: byControllerUid } });
  }

  get(key: string): T | undefined {
    return this.#lister.get(key);
  }

  list(): T[] {
    return this.#lister.list();
  }

  inNamespace(namespace: string): T[] {
    return this.#lister.by('namespace', namespace);
  }

  controlledBy(owner: KubeObject): T[] {
    return this.#lister.by('controller', owner.metadata?.uid ?? '');
  }

  by(values: IndexFunction<T>, value: string): T[] {
    let lister = this.#indexes.get(values);
    if (lister === undefined) {
      lister = createLister(this.informer, { indexes: { index: values } });
      this.#indexes.set(values, lister);
    }
    return lister.by('index', value);
  }

  /** Waits until a condition on this copy holds. It is evaluated after each change and bookmark. */
  until(condition: () => boolean, signal: AbortSignal): Promise<void> {
    if (condition() || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const waiter = { condition, resolve };
      this.#waiters.push(waiter);
      signal.addEventListener('abort', () => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        resolve();
      });
    });
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

function withoutManagedFields<T extends KubeObject>(object: T): T {
  if (object.metadata?.managedFields !== undefined) delete object.metadata.managedFields;
  return object;
}
