import type { KindDefinition } from '@keelson/core';
import type { ControllerHost } from './controller-definition.ts';
import { type Selection, SharedInformer } from './shared-informer.ts';

interface Entry {
  /** The kind and selectors. */
  readonly id: string;
  readonly keep: Selection['keep'];
  readonly informer: SharedInformer;
  users: number;
}

/**
 * The informers of a process, for managers that start and stop independently, for example because each is elected. An
 * informer runs while a manager uses it.
 */
export class InformerPool {
  readonly #host: ControllerHost;
  #entries: readonly Entry[] = [];

  constructor(host: ControllerHost) {
    this.#host = host;
  }

  /** Returns the informer of a kind and selection; to be released as often as it was acquired. */
  acquire(kind: KindDefinition, select: Selection = {}): SharedInformer {
    const id = entryId(kind, select);
    const { keep } = select;
    const shared = this.#entries.find((other) => other.id === id && other.keep === keep);
    if (shared !== undefined) {
      shared.users += 1;
      return shared.informer;
    }
    const informer = new SharedInformer(kind, this.#host, select);
    this.#entries = [...this.#entries, { id, keep, informer, users: 1 }];
    return informer;
  }

  /** Stops the informer when this was its last user. */
  async release(informer: SharedInformer): Promise<void> {
    const entry = this.#entries.find((other) => other.informer === informer);
    if (entry === undefined) return;
    entry.users -= 1;
    if (entry.users > 0) return;
    this.#entries = this.#entries.filter((other) => other !== entry);
    await informer.informer.stop();
  }

  /** Number of informers. */
  get size(): number {
    return this.#entries.length;
  }
}

function entryId(kind: KindDefinition, { labelSelector = '', fieldSelector = '', metadataOnly = false }: Selection) {
  return JSON.stringify([resourceId(kind), labelSelector, fieldSelector, metadataOnly]);
}

/** `group/version/plural`. */
export function resourceId({ group, version, names }: KindDefinition): string {
  return `${group}/${version}/${names.plural}`;
}
