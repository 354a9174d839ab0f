import type { KindDefinition } from '@keelson/core';
import type { ControllerHost } from './controller-definition.ts';
import { type Selection, SharedInformer } from './shared-informer.ts';

interface Entry {
  readonly informer: SharedInformer;
  users: number;
}

/**
 * The informers of a process, for managers that start and stop independently, for example because each is elected. An
 * informer runs while a manager uses it.
 */
export class InformerPool {
  readonly #host: ControllerHost;
  readonly #entries = new Map<string, Entry>();

  constructor(host: ControllerHost) {
    this.#host = host;
  }

  /** Returns the informer of a kind and selection; to be released as often as it was acquired. */
  acquire(kind: KindDefinition, select: Selection = {}): SharedInformer {
    const id = entryId(kind, select);
    const entry = this.#entries.get(id) ?? { informer: new SharedInformer(kind, this.#host, select), users: 0 };
    this.#entries.set(id, entry);
    entry.users += 1;
    return entry.informer;
  }

  /** Stops the informer when this was its last user. */
  async release(informer: SharedInformer): Promise<void> {
    for (const [id, entry] of this.#entries) {
      if (entry.informer !== informer) continue;
      entry.users -= 1;
      if (entry.users > 0) return;
      this.#entries.delete(id);
      await informer.informer.stop();
    }
  }

  /** Number of informers. */
  get size(): number {
    return this.#entries.size;
  }
}

function entryId(kind: KindDefinition, { labelSelector = '', fieldSelector = '', metadataOnly = false }: Selection) {
  return JSON.stringify([resourceId(kind), labelSelector, fieldSelector, metadataOnly]);
}

/** `group/version/plural`. */
export function resourceId({ group, version, names }: KindDefinition): string {
  return `${group}/${version}/${names.plural}`;
}
